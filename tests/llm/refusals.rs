//! What goes wrong, who is told, and whether it is tried again.

use super::*;

/// The error of a conversation with a server that answers like this, and how often it was asked.
async fn refusal(answer: ResponseTemplate, text: &str) -> (LlmError, usize) {
    let server = serve("/v1/chat/completions", answer).await;
    let config = Config { retries: 1, ..config(&server.uri()) };
    let model = Endpoint::connect(&config).await.unwrap();
    let error = complete(&model, &chat(text)).await.0.unwrap_err();
    (error, server.received_requests().await.unwrap().len())
}

#[tokio::test]
async fn a_busy_server_is_asked_again_when_it_says() {
    let server = MockServer::start().await;
    let busy = error_json(429, json!({"message": "slow down"})).insert_header("retry-after", "0");
    Mock::given(method("POST")).respond_with(busy).up_to_n_times(2).with_priority(1).mount(&server).await;
    Mock::given(method("POST")).respond_with(stream(chat_events())).mount(&server).await;
    let model = Endpoint::connect(&config(&server.uri())).await.unwrap();
    let completion = complete(&model, &chat("hello")).await.0.unwrap();
    assert_eq!(said(&completion), CHAT_SAID);
    assert_eq!(server.received_requests().await.unwrap().len(), 3);
}

#[tokio::test]
async fn a_failing_server_is_asked_until_the_tries_are_used_up() {
    let answer = error_json(500, json!({"message": "out of memory"})).insert_header("retry-after-ms", "1");
    let (error, asked) = refusal(answer, "hello").await;
    assert!(
        matches!(&error, LlmError::Transient { message, .. } if message.ends_with("failed with status 500: out of memory")),
        "{error:?}"
    );
    assert_eq!(asked, 2);
}

#[tokio::test]
async fn a_refused_key_is_told_and_never_shown() {
    let (error, asked) = refusal(error_json(401, json!({"message": "Incorrect key: sk-secret."})), "hello").await;
    let LlmError::Permanent { message, hint } = &error else { unreachable!("{error:?}") };
    assert!(message.ends_with("/v1/chat/completions refused the API key: Incorrect key: ***"), "{message}");
    assert_eq!(hint, "check `OPENAI_API_KEY` or `llm.api_key`, and that the key may use this model");
    assert_eq!(asked, 1);
    let config = config("http://user:password@localhost/v1");
    assert!(!format!("{config:?}{}", serde_json::to_string(&config).unwrap()).contains("sk-secret"));
}

#[tokio::test]
async fn an_unknown_model_and_an_unknown_address_are_told_apart() {
    let (error, _) = refusal(error_json(404, json!({"message": "The model `x` does not exist"})), "hello").await;
    assert!(error.to_string().contains("has no model `qwen2.5-coder`"), "{error}");
    let (error, _) = refusal(error_json(404, json!({"message": "File Not Found"})), "hello").await;
    assert!(error.to_string().ends_with("is no address of this server: File Not Found"), "{error}");
    assert_eq!(error.hint(), "check `llm.base_url`; most servers want it to end with `/v1`");
}

#[tokio::test]
async fn a_web_page_is_no_answer() {
    let page = |status| ResponseTemplate::new(status).set_body_raw("<!doctype html><h1>Hi", "text/html");
    let (error, asked) = refusal(page(200), "hello").await;
    assert!(
        matches!(&error, LlmError::Permanent { message, .. } if message.ends_with("answered status 200 with a web page")),
        "{error:?}"
    );
    assert_eq!(asked, 1);
    let (error, asked) = refusal(page(502).insert_header("retry-after-ms", "1"), "hello").await;
    assert!(
        matches!(&error, LlmError::Transient { message, .. } if message.ends_with("answered status 502 with a web page")),
        "{error:?}"
    );
    assert_eq!(asked, 2);
}

#[tokio::test]
async fn a_prompt_that_does_not_fit_is_an_overflow_in_every_servers_words() {
    let llama = json!({"code": 400, "type": "exceed_context_size_error", "message": "too long", "n_prompt_tokens": 8000, "n_ctx": 4096});
    let (error, _) = refusal(error_json(400, llama), "hello").await;
    assert!(
        matches!(error, LlmError::Overflow { prompt_tokens: Some(8000), context_tokens: Some(4096), .. }),
        "{error:?}"
    );
    for words in [
        json!({"code": "context_length_exceeded", "message": "no"}),
        json!({"code": 400, "message": "This model's maximum context length is 4096 tokens."}),
    ] {
        let (error, asked) = refusal(error_json(400, words), "hello").await;
        assert!(matches!(error, LlmError::Overflow { .. }), "{error:?}");
        assert_eq!(asked, 1);
    }
}

#[tokio::test]
async fn a_silently_cut_prompt_is_an_overflow() {
    let long = "The quick brown fox jumps over the lazy dog. ".repeat(100);
    let (error, _) = refusal(stream(chat_events()), &long).await;
    assert!(matches!(error, LlmError::Overflow { prompt_tokens: Some(1100..1200), .. }), "{error:?}");
}

#[tokio::test]
async fn a_server_that_is_down_is_named() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let config = Config { retries: 0, fill: FillFormat::Auto, ..config(&address) };
    let error = connect(&config).await.err().unwrap();
    assert!(
        matches!(&error, LlmError::Transient { message, .. } if *message == format!("nothing listens at {address}/models")),
        "{error:?}"
    );
    assert_eq!(error.hint(), "start the server, or correct `llm.base_url`");
}

#[tokio::test]
async fn a_server_without_tls_is_told() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("https://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let mut stream = listener.accept().await.unwrap().0;
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        let _ = stream.read(&mut [0; 4096]).await;
    });
    let model = Endpoint::connect(&Config { retries: 0, ..config(&address) }).await.unwrap();
    let error = complete(&model, &chat("hello")).await.0.unwrap_err();
    assert!(
        matches!(&error, LlmError::Permanent { message, .. } if message.ends_with("does not speak TLS")),
        "{error:?}"
    );
}

#[tokio::test]
async fn an_error_after_the_first_text_is_not_retried() {
    let text = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\ndata: {\"error\":{\"message\":\"gone\",\"code\":503}}\n\n";
    let server = serve("/v1/chat/completions", stream(text)).await;
    let model = Endpoint::connect(&config(&server.uri())).await.unwrap();
    let (completed, pieces) = complete(&model, &chat("hello")).await;
    let error = completed.unwrap_err();
    assert!(
        matches!(&error, LlmError::Transient { message, .. } if message.ends_with("broke off its answer: gone")),
        "{error:?}"
    );
    assert_eq!(pieces, ["Hi"]);
    assert_eq!(server.received_requests().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_stream_that_ends_too_early_is_retried_only_before_the_first_text() {
    let early = vec![head(), b"data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\n".to_vec()];
    let whole = vec![head(), chat_events().into_bytes()];
    let late = vec![head(), b"data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n".to_vec()];
    let model = Endpoint::connect(&config(&raw_server(vec![early, whole, late]).await)).await.unwrap();
    assert_eq!(said(&complete(&model, &chat("hello")).await.0.unwrap()), CHAT_SAID);
    let (completed, pieces) = complete(&model, &chat("hello")).await;
    let error = completed.unwrap_err();
    assert!(
        matches!(&error, LlmError::Transient { message, .. } if message.contains("broke off its answer")),
        "{error:?}"
    );
    assert_eq!(pieces, ["Hi"]);
}

#[tokio::test]
async fn a_stream_that_ends_after_its_reason_is_whole() {
    let text = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\n";
    let model = Endpoint::connect(&config(&raw_server(vec![vec![head(), text.into()]]).await)).await.unwrap();
    let completion = complete(&model, &chat("hello")).await.0.unwrap();
    assert_eq!(said(&completion), ("Hi", Finish::Ended, TokenUsage::default()));
}

#[tokio::test]
async fn a_field_that_the_server_does_not_know_is_left_out_once_and_for_all() {
    let server = MockServer::start().await;
    let refused = error_json(400, json!({"message": "Unknown field: stream_options"}));
    let with = Mock::given(body_partial_json(json!({"stream_options": {}})));
    with.respond_with(refused).with_priority(1).mount(&server).await;
    Mock::given(method("POST")).respond_with(stream(chat_events())).mount(&server).await;
    let model = Endpoint::connect(&config(&server.uri())).await.unwrap();
    for _ in 0..2 {
        assert_eq!(said(&complete(&model, &chat("hello")).await.0.unwrap()), CHAT_SAID);
    }
    assert_eq!(server.received_requests().await.unwrap().len(), 3);
}

#[tokio::test]
async fn a_silent_server_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let timeouts = Timeouts { first_token_s: 0.1, ..config("").timeouts };
    let model = Endpoint::connect(&Config { timeouts, ..config(&address) }).await.unwrap();
    let error = complete(&model, &chat("hello")).await.0.unwrap_err();
    let message = format!("{address}/v1/chat/completions wrote nothing for 0.1 s");
    assert_eq!(error.to_string(), message);
}

#[tokio::test]
async fn an_endless_answer_is_cut() {
    let text = format!("data: {{\"choices\":[]}}\n\n: {}\n\n", "x".repeat(4096));
    let server = serve("/v1/chat/completions", stream(text)).await;
    let model = Endpoint::connect(&Config { response_kib: 2, retries: 0, ..config(&server.uri()) }).await.unwrap();
    let error = complete(&model, &chat("hello")).await.0.unwrap_err();
    assert!(error.to_string().ends_with("it is longer than 2 KiB, see `llm.response_kib`"), "{error}");
}
