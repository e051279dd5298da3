//! `--call`: a tool's name, or JSON.

use stdiowatch::config;
use stdiowatch::probe::Call;

/// The input is the argument.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(call) = config::call(text) {
        assert!(serde_json::from_str::<serde_json::Value>(&call.arguments).is_ok_and(|arguments| arguments.is_object()), "{call:?}");
        let kept = serde_json::to_string(&call).expect("it can be written");
        assert_eq!(serde_json::from_str::<Call>(&kept).expect("and read"), call);
    }
}
