//! Addresses, headers and models of every provider, and secrets that are not printed.

use super::*;

pub(crate) fn endpoint(base_url: &str) -> Endpoint {
    let provider = Provider::of(base_url);
    Endpoint {
        name: "test".to_owned(),
        base_url: Endpoint::parse_url(base_url).unwrap(),
        provider,
        model: Some("m".to_owned()),
        key: Key::None,
        headers: BTreeMap::new(),
        is_stateful: provider.keeps_responses(),
        max_retries: 2,
        limits: Limits {
            connect: Duration::from_secs(5),
            first_byte: Duration::from_secs(5),
            idle: Duration::from_secs(5),
        },
        azure: Azure::default(),
        openclaw: OpenClaw {
            agent_id: None,
            session_key: None,
            nested_tools: true,
        },
    }
}

#[test]
fn every_provider_is_known_by_its_address_and_has_its_path() {
    let rows = [
        (
            "https://api.openai.com",
            "openai",
            "https://api.openai.com/v1/responses",
        ),
        (
            "https://api.openai.com/v1/",
            "openai",
            "https://api.openai.com/v1/responses",
        ),
        (
            "https://x.openai.azure.com",
            "azure",
            "https://x.openai.azure.com/openai/responses",
        ),
        (
            "https://x.openai.azure.com/openai/v1",
            "azure",
            "https://x.openai.azure.com/openai/v1/responses",
        ),
        (
            "https://router.huggingface.co/v1",
            "huggingface",
            "https://router.huggingface.co/v1/responses",
        ),
        (
            "http://localhost:18789",
            "openclaw",
            "http://localhost:18789/v1/responses",
        ),
        (
            "http://127.0.0.1:1234/api/v3",
            "custom",
            "http://127.0.0.1:1234/api/v3/responses",
        ),
    ];
    for (base, provider, url) in rows {
        let endpoint = endpoint(base);
        let got = (endpoint.provider.name(), endpoint.url().to_string());
        assert_eq!(got, (provider, url.to_owned()), "{base}");
    }
}

#[test]
fn azure_takes_its_key_and_its_version_in_its_own_way() {
    let dir = env::temp_dir().join(format!("linkspan-key-{}", std::process::id()));
    fs::write(&dir, "k-1\n").unwrap();
    let mut azure = endpoint("https://x.openai.azure.com");
    azure.key = Key::File(dir.clone());
    azure.azure.api_version = Some("2025-04-01".to_owned());
    azure.azure.deployment_name = Some("mine".to_owned());
    assert_eq!(azure.url().query(), Some("api-version=2025-04-01"));
    assert_eq!(azure.model().unwrap(), "mine");
    let (headers, key) = azure.headers().unwrap();
    assert_eq!(key.as_deref(), Some("k-1"));
    assert_eq!(headers["api-key"], "k-1");
    assert_eq!(headers.get(AUTHORIZATION), None);
    assert!(!format!("{headers:?}").contains("k-1"));
    let mut other = endpoint("http://127.0.0.1:1");
    other.key = Key::File(dir.clone());
    assert_eq!(other.headers().unwrap().0[AUTHORIZATION], "Bearer k-1");
    fs::remove_file(dir).unwrap();
}

#[test]
fn openclaw_gets_the_agent_and_the_session() {
    let mut claw = endpoint("http://localhost:18789");
    claw.openclaw.agent_id = Some("main".to_owned());
    claw.openclaw.session_key = Some("s1".to_owned());
    let (headers, _) = claw.headers().unwrap();
    assert_eq!(headers["x-openclaw-agent-id"], "main");
    assert_eq!(headers["x-openclaw-session-key"], "s1");
}

#[test]
fn addresses_with_passwords_or_queries_are_refused() {
    for url in [
        "https://u:p@host/v1",
        "ftp://host",
        "file:///etc/passwd",
        "https://host?x=1",
        "nonsense",
    ] {
        assert!(Endpoint::parse_url(url).is_err(), "{url}");
    }
}

#[test]
fn possible_secrets_are_not_printed() {
    let refused = Endpoint::parse_url("htp://u:canary-1@host/v1?key=canary-2#x").unwrap_err();
    let refused = match refused {
        EndpointError::Password => "password".to_owned(),
        other => other.to_string(),
    };
    assert!(!refused.contains("canary"), "{refused}");
    let query = Endpoint::parse_url("https://host/v1?key=canary-2").unwrap_err();
    assert_eq!(
        query.to_string(),
        "`https://host/v1` is no address of an endpoint"
    );
    let half = Endpoint::parse_url("u:canary-1@host").unwrap_err();
    assert!(!half.to_string().contains("canary"), "{half}");
    let mut claw = endpoint("http://localhost:18789");
    claw.headers.insert("x".to_owned(), "canary-3".to_owned());
    claw.openclaw.session_key = Some("canary-4".to_owned());
    assert!(!format!("{claw:?} {:?}", claw.openclaw).contains("canary"));
}
