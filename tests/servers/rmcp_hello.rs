//! Hello on the newest Rust SDK: a sound server that speaks both eras, as a peer for tests.
//!
//! Built as a cargo example (`rmcp_hello`), so that tests find it in `target/PROFILE/examples`.

use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation};
use rmcp::model::{ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool, object};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::{ErrorData, ServerHandler, ServiceExt, transport::stdio};
use serde_json::json;

struct Hello;

impl ServerHandler for Hello {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build()).with_server_info(Implementation::new("hello-rmcp", "1.0.0"))
    }

    async fn list_tools(&self, _: Option<PaginatedRequestParams>, _: RequestContext<RoleServer>) -> Result<ListToolsResult, ErrorData> {
        let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
        Ok(ListToolsResult::with_all_items(vec![Tool::new("hello", "Say hello to someone.", object(schema))]))
    }

    async fn call_tool(&self, request: CallToolRequestParams, _: RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let name = arguments.get("name").and_then(|name| name.as_str()).unwrap_or("world");
        Ok(CallToolResult::success(vec![ContentBlock::text(format!("Hello, {name}!"))]).into())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    Hello.serve(stdio()).await?.waiting().await?;
    Ok(())
}
