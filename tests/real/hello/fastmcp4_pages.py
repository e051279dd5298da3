"""Hello on FastMCP 4 (dual era) with five tools, listed in pages of two."""

from fastmcp import FastMCP

mcp = FastMCP("hello-fastmcp4", version="1.0.0", list_page_size=2)


def tool(n: int):
    @mcp.tool(name=f"hello_{n}")
    def hello(name: str) -> str:
        """Say hello to someone."""
        return f"Hello number {n}, {name}!"


for n in range(5):
    tool(n)

mcp.run(show_banner=False)
