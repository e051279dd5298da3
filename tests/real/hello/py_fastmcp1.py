"""Hello on the Python SDK 1.x (run with mcp 1.6.0 and with mcp 1.30.0)."""

from mcp.server.fastmcp import FastMCP

mcp = FastMCP("hello-py1")


@mcp.tool()
def hello(name: str) -> str:
    """Say hello to someone."""
    return f"Hello, {name}!"


mcp.run()
