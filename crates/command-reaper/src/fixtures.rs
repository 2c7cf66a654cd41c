//! A command that has not ended.

use std::sync::Arc;

use command_reaper::command::CommandRow;
use kube::core::{ApiResource, GroupVersionKind};
use operator_watch::{DynamicRow, WriteTarget};
use serde_json::json;

/// The command as it is watched.
pub fn command() -> DynamicRow<CommandRow> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Task"));
    let metadata = json!({"name": "dump", "namespace": "shop", "uid": "task", "resourceVersion": "7"});
    DynamicRow {
        metadata: serde_json::from_value(metadata).unwrap(),
        kind_id: "tasks".into(),
        write_target: Arc::new(WriteTarget::unwatched(resource)),
        row: CommandRow {
            expires_at: Ok(None),
            declared_by: None,
            is_kept: false,
            is_restored: false,
            spec: 1,
        },
    }
}
