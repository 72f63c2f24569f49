//! The way to a model: TLS, proxies, connections.

use retake_agent::model::{Model, ModelError, ModelSettings};
use retake_testkit::{ScriptedModel, rerun};

use crate::model::{BOTH, ask, client, user};

/// Set in the process that has a proxy.
const HAS_PROXY: &str = "RETAKE_TEST_HAS_PROXY";

#[tokio::test]
async fn a_server_that_does_not_speak_tls_is_unreachable_over_it() {
    for api in BOTH {
        let server = ScriptedModel::start();
        let url = server.url().replace("http://", "https://");
        let settings = ModelSettings::parse(&format!("{}/m", api.prefix()), Some(&url), |_| None).unwrap();
        let error = ask(&Model::new(settings).unwrap(), &[user("hi")]).await.unwrap_err();
        assert!(matches!(error, ModelError::Unreachable { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn a_local_server_is_asked_without_the_proxy() {
    if std::env::var_os(HAS_PROXY).is_none() {
        // Variables hold for a whole process, so this test runs again in one that has them.
        let mut again = rerun::test("model_network::a_local_server_is_asked_without_the_proxy");
        let proxy = ScriptedModel::refusing_url();
        for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
            again.env(name, &proxy);
        }
        let output = again.env_remove("NO_PROXY").env_remove("no_proxy").env(HAS_PROXY, "1").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        return;
    }
    for api in BOTH {
        let server = ScriptedModel::start();
        server.says("hi");
        ask(&client(api, &server), &[user("hi")]).await.unwrap();
    }
}

#[tokio::test]
async fn one_connection_serves_a_whole_conversation() {
    for api in BOTH {
        let server = ScriptedModel::answering(|_| retake_testkit::model::Answer::default().says("ok"));
        let model = client(api, &server);
        for _ in 0..20 {
            ask(&model, &[user("hi")]).await.unwrap();
        }
        assert_eq!(server.connections(), 1);
    }
}
