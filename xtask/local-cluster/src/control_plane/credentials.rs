//! Kubeconfigs of the administrator and of the cluster's own programs.

use anyhow::Result;
use k8s_openapi::ByteString;
use serde_json::{Value, json};

use super::certificates::{Authority, Signed};
use crate::{
    home::Home,
    kubeconfig::{self, document},
    state::Addresses,
};

/// The programs with a user of their own, so that the audit log distinguishes them.
const PROGRAMS: [(&str, &str, Option<&str>); 4] = [
    ("controller-manager", "system:kube-controller-manager", None),
    ("scheduler", "system:kube-scheduler", None),
    ("kwok", "kwok", Some("system:masters")),
    ("host-runner", "host-runner", Some("system:masters")),
];

/// Writes the kubeconfig of the administrator and those of the programs.
pub fn write(authority: &Authority, home: &Home, addresses: &Addresses) -> Result<()> {
    let cluster = json!({
        "server": addresses.server(),
        "certificate-authority-data": ByteString(authority.pem().into_bytes()),
    });
    let context = format!("catena-{}", home.name());
    let admin = authority.client("admin", Some("system:masters"))?;
    kubeconfig::write(
        &home.kubeconfig(),
        &document(&context, &cluster, &certificate_user(&admin), "default"),
    )?;
    for (program, user, group) in PROGRAMS {
        let signed = authority.client(user, group)?;
        let document = document(&context, &cluster, &certificate_user(&signed), "default");
        kubeconfig::write(&home.kubeconfig_of(program), &document)?;
    }
    Ok(())
}

fn certificate_user(signed: &Signed) -> Value {
    json!({
        "client-certificate-data": ByteString(signed.certificate.clone().into_bytes()),
        "client-key-data": ByteString(signed.key.clone().into_bytes()),
    })
}
