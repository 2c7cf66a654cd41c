//! The cluster's own certificate authority, its certificates, and the kubeconfigs with them.

use anyhow::Result;
use k8s_openapi::ByteString;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use serde_json::json;

use crate::{
    files::write_private,
    kubeconfig::{self, document},
    local_cluster::LocalCluster,
    state::Addresses,
};

/// The names by which clients reach the API server.
const SERVER_NAMES: [&str; 7] = [
    "127.0.0.1",
    "localhost",
    "10.96.0.1",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// The programs with a user of their own, so that the audit log distinguishes them; each with its user and group.
const PROGRAMS: [(&str, &str, Option<&str>); 4] = [
    ("controller-manager", "system:kube-controller-manager", None),
    ("scheduler", "system:kube-scheduler", None),
    ("kwok", "kwok", Some("system:masters")),
    ("host-runner", "host-runner", Some("system:masters")),
];

/// A certificate authority in memory, because all certificates of one `up` are signed at once.
type Authority = CertifiedIssuer<'static, KeyPair>;

/// Writes the files for the API server and the controller manager, and the kubeconfigs of the administrator and of the
/// programs.
pub fn write(cluster: &LocalCluster, addresses: &Addresses) -> Result<()> {
    let mut authority = params("catena-local", &[])?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let authority = Authority::self_signed(authority, KeyPair::generate()?)?;
    let serving = params("kube-apiserver", &SERVER_NAMES)?;
    let serving = signed(&authority, serving, ExtendedKeyUsagePurpose::ServerAuth)?;
    let service_accounts = KeyPair::generate()?;
    for (file, text) in [
        ("ca.crt", authority.pem()),
        ("ca.key", authority.key().serialize_pem()),
        ("api-server.crt", serving.certificate),
        ("api-server.key", serving.key),
        ("service-accounts.key", service_accounts.serialize_pem()),
        ("service-accounts.pub", service_accounts.public_key_pem()),
    ] {
        write_private(&cluster.certificates().join(file), &text)?;
    }

    let server = json!({
        "server": addresses.server(),
        "certificate-authority-data": ByteString(authority.pem().into_bytes()),
    });
    let administrator = (cluster.kubeconfig(), "admin", Some("system:masters"));
    let programs = PROGRAMS.map(|(program, user, group)| (cluster.kubeconfig_of(program), user, group));
    for (path, user, group) in [administrator].into_iter().chain(programs) {
        let mut params = params(user, &[])?;
        if let Some(group) = group {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        let Signed { certificate, key } = signed(&authority, params, ExtendedKeyUsagePurpose::ClientAuth)?;
        let user = json!({
            "client-certificate-data": ByteString(certificate.into_bytes()),
            "client-key-data": ByteString(key.into_bytes()),
        });
        let context = format!("catena-{}", cluster.name());
        kubeconfig::write(&path, &document(&context, &server, &user, "default"))?;
    }
    Ok(())
}

/// A certificate and its key, as PEM.
struct Signed {
    certificate: String,
    key: String,
}

fn signed(
    authority: &Authority,
    mut params: CertificateParams,
    usage: ExtendedKeyUsagePurpose,
) -> Result<Signed> {
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![usage];
    params.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, authority)?;
    Ok(Signed { certificate: certificate.pem(), key: key.serialize_pem() })
}

fn params(common_name: &str, names: &[&str]) -> Result<CertificateParams> {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name.remove(DnType::CommonName);
    params.distinguished_name.push(DnType::CommonName, common_name);
    params.not_before = date_time_ymd(2020, 1, 1);
    // A local cluster is deleted long before that.
    params.not_after = date_time_ymd(2120, 1, 1);
    Ok(params)
}
