// Hello on the TypeScript SDK 1.x (legacy only).
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { z } from "zod";

const server = new McpServer({ name: "hello-ts1", version: "1.0.0" });
server.registerTool("hello", { description: "Say hello to someone.", inputSchema: { name: z.string() } }, ({ name }) => ({
  content: [{ type: "text", text: `Hello, ${name}!` }],
}));
await server.connect(new StdioServerTransport());
