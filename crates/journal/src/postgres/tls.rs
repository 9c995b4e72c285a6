//! Encryption with rustls: the name of the server is checked against the authorities of the system and those
//! of the user's own file.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::address::AddressError;

pub(super) fn connector(ca_file: Option<&Path>) -> Result<MakeRustlsConnect, AddressError> {
    let mut roots = RootCertStore::empty();
    // Some of a system's certificates are always too old for rustls; the others do.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = ca_file {
        add(&mut roots, path)?;
    }
    // Named, because the program may have linked another one too.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider has the default versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

fn add(roots: &mut RootCertStore, path: &Path) -> Result<(), AddressError> {
    let source = |source| AddressError::File {
        path: path.to_owned(),
        source,
    };
    let pem = std::fs::read(path).map_err(source)?;
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(&pem).flatten().collect();
    let (n_added, _) = roots.add_parsable_certificates(certificates);
    match n_added {
        0 => Err(AddressError::NoCertificate(path.to_owned())),
        _ => Ok(()),
    }
}
