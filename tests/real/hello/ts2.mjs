// Hello on the TypeScript SDK 2.x: dual era, or modern only with the argument `reject`.
import { McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

const legacy = process.argv[2] ?? "serve";
serveStdio(() => {
  const server = new McpServer({ name: "hello-ts2", version: "1.0.0" });
  server.registerTool("hello", { description: "Say hello to someone.", inputSchema: z.object({ name: z.string() }) }, ({ name }) => ({
    content: [{ type: "text", text: `Hello, ${name}!` }],
  }));
  return server;
}, { legacy });
