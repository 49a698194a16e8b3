//! What is asked and what is read, for each wire format.

use super::*;

#[tokio::test]
async fn a_conversation_is_streamed_and_counted() {
    let server = serve("/v1/chat/completions", stream(chat_events())).await;
    let model = Endpoint::connect(&config(&server.uri())).await.unwrap();
    let (completed, pieces) = complete(&model, &chat("say <|im_end|> hello")).await;
    assert_eq!(said(&completed.unwrap()), CHAT_SAID);
    assert_eq!(pieces, ["Здрав", "ствуй\n"]);
    let expected = json!({
        "messages": [{"role": "user", "content": "say < |im_end|> hello"}],
        "stream_options": {"include_usage": true},
        "model": "qwen2.5-coder", "max_tokens": 64, "temperature": 0.2, "stream": true, "stop": ["STOP"],
    });
    assert_eq!(body_of(&server, 0).await, expected);
    let requests = server.received_requests().await.unwrap();
    assert_eq!(requests[0].headers["authorization"], "Bearer sk-secret");
}

#[tokio::test]
async fn a_stream_may_be_cut_into_pieces_anywhere() {
    let bytes = chat_events().into_bytes();
    let cuts = [1, 2, 3, 5, 7, 64, 4096];
    let answers = cuts.map(|size| {
        let mut pieces = vec![head()];
        pieces.extend(bytes.chunks(size).map(<[u8]>::to_vec));
        pieces
    });
    let model = Endpoint::connect(&config(&raw_server(answers.to_vec()).await)).await.unwrap();
    for size in cuts {
        let completion = complete(&model, &chat("hello")).await.0.unwrap();
        assert_eq!(said(&completion), CHAT_SAID, "pieces of {size}");
    }
}

#[tokio::test]
async fn an_answer_in_one_piece_is_taken_too() {
    let answer = json!({
        "choices": [{"message": {"role": "assistant", "content": "Hi"}, "finish_reason": "length"}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 1, "prompt_cache_hit_tokens": 4},
    });
    let server = serve("/v1/chat/completions", ResponseTemplate::new(200).set_body_json(answer)).await;
    let model = Endpoint::connect(&config(&server.uri())).await.unwrap();
    let completion = complete(&model, &chat("hello")).await.0.unwrap();
    assert_eq!(said(&completion), ("Hi", Finish::Length, TokenUsage { prompt: 5, cached: 4, completion: 1 }));
}

#[tokio::test]
async fn a_stop_string_ends_the_text_even_if_the_server_ignores_it() {
    let pieces = ["one ST", "OP two"].map(|text| json!({"choices": [{"delta": {"content": text}}]}));
    let server = serve("/v1/chat/completions", stream(events(&pieces))).await;
    let model = Endpoint::connect(&config(&server.uri())).await.unwrap();
    let (completed, pieces) = complete(&model, &chat("hello")).await;
    assert_eq!(said(&completed.unwrap()), ("one ", Finish::Ended, TokenUsage::default()));
    assert_eq!(pieces, ["one "]);
}

#[tokio::test]
async fn a_hole_is_filled_by_the_familys_tokens() {
    let pieces = [
        json!({"choices": [{"text": "middle", "finish_reason": null}]}),
        json!({"choices": [{"text": "", "finish_reason": "length"}], "usage": {"prompt_tokens": 6, "completion_tokens": 2}}),
    ];
    let server = serve("/v1/completions", stream(events(&pieces))).await;
    let model = Endpoint::connect(&config(&server.uri())).await.unwrap();
    assert_eq!(model.abilities(), Abilities { fill: true, chat: true, context_tokens: None });
    let completion = complete(&model, &hole("a = <|fim_middle|>", "\nprint(a)")).await.0.unwrap();
    assert_eq!(said(&completion), ("middle", Finish::Length, TokenUsage { prompt: 6, cached: 0, completion: 2 }));
    let body = body_of(&server, 0).await;
    assert_eq!(body["prompt"], "<|fim_prefix|>a = < |fim_middle|><|fim_suffix|>\nprint(a)<|fim_middle|>");
    let stops = body["stop"].as_array().unwrap();
    assert!(stops.contains(&json!("<|endoftext|>")) && stops.contains(&json!("<|fim_prefix|>")), "{stops:?}");
}

#[tokio::test]
async fn a_hole_is_filled_by_infill() {
    let text = "data: {\"content\":\"mid\",\"stop\":false,\"tokens_evaluated\":9}\n\n\
        data: {\"content\":\"\",\"stop\":true,\"stop_type\":\"limit\",\"tokens_evaluated\":9,\"tokens_predicted\":4,\
        \"timings\":{\"cache_n\":2}}\n\n";
    let server = serve("/infill", stream(text)).await;
    let config = Config { fill: FillFormat::Infill, ..config(&format!("{}/v1", server.uri())) };
    let model = Endpoint::connect(&config).await.unwrap();
    let completion = complete(&model, &hole("P", "S")).await.0.unwrap();
    assert_eq!(said(&completion), ("mid", Finish::Length, TokenUsage { prompt: 9, cached: 2, completion: 4 }));
    let body = body_of(&server, 0).await;
    assert_eq!(
        (&body["input_prefix"], &body["input_suffix"], &body["n_predict"]),
        (&json!("P"), &json!("S"), &json!(64))
    );
}

#[tokio::test]
async fn a_hole_is_filled_by_mistral_in_the_shape_of_a_conversation() {
    let pieces = [
        json!({"choices": [{"delta": {"content": "mid"}, "finish_reason": null}]}),
        json!({"choices": [{"delta": {"content": ""}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 7, "completion_tokens": 1}}),
    ];
    let server = serve("/v1/fim/completions", stream(events(&pieces))).await;
    let config = Config { fill: FillFormat::Mistral, template: Some(Family::Codestral), ..config(&server.uri()) };
    let model = Endpoint::connect(&config).await.unwrap();
    let completion = complete(&model, &hole("P", "S")).await.0.unwrap();
    assert_eq!(said(&completion), ("mid", Finish::Ended, TokenUsage { prompt: 7, cached: 0, completion: 1 }));
    let expected = json!({
        "prompt": "P", "suffix": "S", "model": "qwen2.5-coder", "max_tokens": 64, "temperature": 0.0, "stream": true,
        "stop": ["</s>", "[SUFFIX]", "[PREFIX]", "[MIDDLE]"],
    });
    assert_eq!(body_of(&server, 0).await, expected);
}

/// A server whose prompt counts are 10 without a suffix and `with` when there is one.
async fn suffix_server(with: u32) -> MockServer {
    let server = MockServer::start().await;
    let answer = |prompt: u32| {
        let usage = json!({"prompt_tokens": prompt, "completion_tokens": 1});
        stream(events(&[json!({"choices": [{"text": "x", "finish_reason": "length"}], "usage": usage})]))
    };
    let empty = Mock::given(method("POST")).and(path("/v1/completions")).and(body_partial_json(json!({"suffix": ""})));
    empty.respond_with(answer(10)).with_priority(1).mount(&server).await;
    Mock::given(method("POST")).and(path("/v1/completions")).respond_with(answer(with)).mount(&server).await;
    server
}

#[tokio::test]
async fn a_suffix_is_used_only_where_it_is_honoured() {
    let server = suffix_server(30).await;
    let of =
        |server: &MockServer| Config { fill: FillFormat::Suffix, model: Some("m".into()), ..config(&server.uri()) };
    let model = Endpoint::connect(&of(&server)).await.unwrap();
    let completion = complete(&model, &hole("P", "S")).await.0.unwrap();
    assert_eq!(completion.text, "x");
    let body = body_of(&server, 2).await;
    assert_eq!((&body["prompt"], &body["suffix"]), (&json!("P"), &json!("S")));

    let server = suffix_server(10).await;
    let error = Endpoint::connect(&of(&server)).await.err().unwrap();
    let LlmError::Permanent { message, hint } = error else { unreachable!("{error:?}") };
    assert_eq!(message, format!("{}/v1/ takes no `suffix`, or ignores it", server.uri()));
    assert_eq!(hint, "set `llm.fill` to `tokens`, `infill` or `none`");
}

#[tokio::test]
async fn what_the_configuration_leaves_open_is_asked_of_the_server() {
    let server = MockServer::start().await;
    let list = json!({"data": [{"id": "qwen3-coder", "owned_by": "vllm", "max_model_len": 32768}]});
    Mock::given(method("GET"))
        .and(path("/v1/models"))
        .and(header("authorization", "Bearer sk-secret"))
        .respond_with(ResponseTemplate::new(200).set_body_json(list))
        .mount(&server)
        .await;
    let one = events(&[json!({"choices": [{"text": "x", "finish_reason": "length"}]})]);
    Mock::given(path("/v1/completions")).respond_with(stream(one)).mount(&server).await;
    let config = Config { model: None, fill: FillFormat::Auto, ..config(&server.uri()) };
    let model = connect(&config).await.unwrap();
    assert_eq!(model.name(), "qwen3-coder");
    assert_eq!(model.abilities(), Abilities { fill: true, chat: true, context_tokens: Some(32768) });
    assert_eq!(body_of(&server, 1).await["prompt"].as_str().unwrap().get(..14), Some("<|fim_prefix|>"));
}

#[tokio::test]
async fn a_server_that_fills_no_holes_only_converses() {
    let server = MockServer::start().await;
    let config = Config { fill: FillFormat::Auto, ..config(&server.uri()) };
    let model = connect(&config).await.unwrap();
    assert_eq!(model.abilities(), Abilities { fill: false, chat: true, context_tokens: None });
    let error = complete(&*model, &hole("P", "S")).await.0.unwrap_err();
    assert_eq!(error.to_string(), format!("`qwen2.5-coder` at {}/v1/ does not fill holes", server.uri()));
}

/// A server that sends one piece and then waits until the client leaves.
async fn waiting_server() -> (String, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let left = tokio::spawn(async move {
        let mut stream = listener.accept().await.unwrap().0;
        read_request(&mut stream).await;
        let piece = b"data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n";
        stream.write_all(&[head(), piece.to_vec()].concat()).await.unwrap();
        // Zero bytes or an error: the client closed the connection.
        assert_eq!(stream.read(&mut [0; 16]).await.unwrap_or(0), 0);
    });
    (address, left)
}

#[tokio::test]
async fn breaking_off_closes_the_connection() {
    let (address, left) = waiting_server().await;
    let model = Endpoint::connect(&config(&address)).await.unwrap();
    let completion = model.complete(&chat("hello"), &mut |_| ControlFlow::Break(())).await.unwrap();
    assert_eq!(said(&completion), ("Hi", Finish::Stopped, TokenUsage::default()));
    tokio::time::timeout(Duration::from_secs(10), left).await.unwrap().unwrap();
}

#[tokio::test]
async fn dropping_the_future_closes_the_connection() {
    let (address, left) = waiting_server().await;
    let model = Endpoint::connect(&config(&address)).await.unwrap();
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    let request = chat("hello");
    let mut on_text = move |_: &str| {
        sender.send(()).unwrap();
        ControlFlow::Continue(())
    };
    tokio::select! {
        _ = model.complete(&request, &mut on_text) => unreachable!("the server never ends"),
        _ = receiver.recv() => {}
    }
    tokio::time::timeout(Duration::from_secs(10), left).await.unwrap().unwrap();
}

#[test]
fn the_configuration_has_defaults_and_refuses_unknown_names() {
    let config: Config = serde_json::from_value(json!({})).unwrap();
    assert_eq!(config, Config::default());
    assert!(!config.names_endpoint());
    let config: Config =
        serde_json::from_value(json!({"api_key": "k", "fill": "infill", "template": "codellama"})).unwrap();
    let expected = Config {
        api_key: Some(Secret::new("k")),
        fill: FillFormat::Infill,
        template: Some(Family::CodeLlama),
        ..Config::default()
    };
    assert_eq!(config, expected);
    assert!(config.names_endpoint());
    let error = serde_json::from_value::<Config>(json!({"local": {"modle": "x"}})).unwrap_err();
    assert!(error.to_string().starts_with("unknown field `modle`"), "{error}");
}

#[tokio::test]
async fn a_scripted_model_answers_in_order_and_remembers_what_it_was_asked() {
    let failure = || LlmError::Transient { message: "busy".into(), hint: String::new() };
    let model = Scripted::with_answers([Ok("print(1)\nSTOP rest".to_owned()), Err(failure())]);
    let (completed, pieces) = complete(&model, &chat("hello")).await;
    assert_eq!(
        said(&completed.unwrap()),
        ("print(1)\n", Finish::Ended, TokenUsage { prompt: 2, cached: 0, completion: 3 })
    );
    assert_eq!(pieces, ["print(1", ")\n"]);
    assert_eq!(complete(&model, &hole("a", "b")).await.0.unwrap_err().to_string(), "busy");
    let error = complete(&model, &chat("more")).await.0.unwrap_err();
    assert_eq!(error.to_string(), "the scripted model has no answer left");
    assert_eq!(model.requests(), [chat("hello"), hole("a", "b"), chat("more")]);
    assert_eq!(model.left(), 0);
}
