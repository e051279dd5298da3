//! Hello on the Rust SDK 0.8 (legacy only): exits with status 1 on `server/discover`.

use rmcp::model::{
    CallToolRequestParam, CallToolResult, Content, ListToolsResult, PaginatedRequestParam,
};
use rmcp::model::{Implementation, ServerCapabilities, ServerInfo, Tool, object};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::{ErrorData, ServerHandler, ServiceExt, transport::stdio};
use serde_json::json;

struct Hello;

impl ServerHandler for Hello {
    fn get_info(&self) -> ServerInfo {
        ServerInfo {
            capabilities: ServerCapabilities::builder().enable_tools().build(),
            server_info: Implementation {
                name: "hello-rmcp-old".into(),
                version: "1.0.0".into(),
                ..Implementation::default()
            },
            ..ServerInfo::default()
        }
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParam>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
        Ok(ListToolsResult::with_all_items(vec![Tool::new(
            "hello",
            "Say hello to someone.",
            object(schema),
        )]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParam,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let name = arguments
            .get("name")
            .and_then(|name| name.as_str())
            .unwrap_or("world");
        Ok(CallToolResult::success(vec![Content::text(format!(
            "Hello, {name}!"
        ))]))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    Hello.serve(stdio()).await?.waiting().await?;
    Ok(())
}
