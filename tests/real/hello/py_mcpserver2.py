"""Hello on the Python SDK 2.x (dual era)."""

from mcp.server.mcpserver import MCPServer

mcp = MCPServer("hello-py2")


@mcp.tool()
def hello(name: str) -> str:
    """Say hello to someone."""
    return f"Hello, {name}!"


mcp.run()
