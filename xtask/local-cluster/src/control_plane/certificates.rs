//! The cluster's own certificate authority and its certificates.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};

use crate::home::Home;

/// A certificate authority in memory, because all certificates of one `up` are signed at once.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its key, as PEM.
pub struct Signed {
    pub certificate: String,
    pub key: String,
}

impl Authority {
    /// A new authority.
    pub fn new() -> Result<Self> {
        let mut params = params("catena-local", Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        Ok(Self { issuer: CertifiedIssuer::self_signed(params, KeyPair::generate()?)? })
    }

    /// Its certificate, as PEM.
    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// A certificate with which a client is `user`, in `group`.
    pub fn client(&self, user: &str, group: Option<&str>) -> Result<Signed> {
        let mut params = params(user, Vec::new())?;
        if let Some(group) = group {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        self.sign(params, ExtendedKeyUsagePurpose::ClientAuth)
    }

    fn server(&self, names: Vec<String>) -> Result<Signed> {
        self.sign(params("kube-apiserver", names)?, ExtendedKeyUsagePurpose::ServerAuth)
    }

    fn sign(&self, mut params: CertificateParams, usage: ExtendedKeyUsagePurpose) -> Result<Signed> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![usage];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Signed { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}

fn params(common_name: &str, names: Vec<String>) -> Result<CertificateParams> {
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name.remove(DnType::CommonName);
    params.distinguished_name.push(DnType::CommonName, common_name);
    params.not_before = date_time_ymd(2020, 1, 1);
    // A local cluster is deleted long before that.
    params.not_after = date_time_ymd(2120, 1, 1);
    Ok(params)
}

/// Writes the files for the API server and the controller manager.
pub fn write(authority: &Authority, home: &Home) -> Result<()> {
    let directory = home.certificates();
    let put = |file: &str, text: &str| write_private(&directory.join(file), text);

    put("ca.crt", &authority.pem())?;
    put("ca.key", &authority.issuer.key().serialize_pem())?;

    let names = ["127.0.0.1", "localhost", "10.96.0.1", "kubernetes", "kubernetes.default"]
        .into_iter()
        .chain(["kubernetes.default.svc", "kubernetes.default.svc.cluster.local"])
        .map(str::to_owned)
        .collect();
    let serving = authority.server(names)?;
    put("api-server.crt", &serving.certificate)?;
    put("api-server.key", &serving.key)?;

    let service_accounts = KeyPair::generate()?;
    put("service-accounts.key", &service_accounts.serialize_pem())?;
    put("service-accounts.pub", &service_accounts.public_key_pem())
}

fn write_private(path: &Path, text: &str) -> Result<()> {
    use std::{io::Write, os::unix::fs::OpenOptionsExt};
    fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("could not write {}", path.display()))
}
