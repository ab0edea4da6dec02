import type { Hono } from "hono";
import { decodeForwardBackward, requests } from "../../tinker/wire/index.js";
import { readBody } from "../server/read-json-body.js";
import { RequestError, toRequestError } from "../server/request-error.js";
import { RequestLifetime } from "../server/request-lifetime.js";
import { mountCheckpointRoutes } from "./checkpoint-routes.js";
import { readRequest, type AddRoute } from "./read-request.js";
import { getSampleLog } from "./sampling-service.js";
import type { TinkerService } from "./tinker-service.js";

/** Time that a request waits for a result; the SDK abandons requests after 45 seconds. */
const LONG_POLL_MS = 25_000;
const PROTOBUF = "application/x-protobuf";

/**
 * Settings of clients. Chunks stay below the limit of bodies, and concurrent samples below the
 * limit of requests, because each of them waits in a request.
 */
const CLIENT_CONFIG = {
  parallel_fwdbwd_chunks: true,
  proto_compress_fwdbwd: false,
  fwdbwd_max_chunk_len: 1024,
  fwdbwd_max_chunk_bytes_count: 4_000_000,
  sample_max_concurrent_requests: 512,
  sample_use_retrieve_futures: false,
  custom_loss_server_side: false,
};

/** Adds the routes of the Tinker API under /api/v1. */
export function mountTinkerRoutes(app: Hono, service: TinkerService, onError?: (error: unknown) => void): void {
  const add: AddRoute = (method, path, handler) => {
    app.on(method, `/api/v1/${path}`, async (context) => {
      try {
        const answer = await handler(context);
        return answer instanceof Response ? answer : context.json(answer);
      } catch (error) {
        const requestError = toRequestError(error);
        if (requestError.status >= 500) onError?.(requestError.cause ?? error);
        if (requestError.retryAfter !== undefined) context.header("retry-after", String(requestError.retryAfter));
        return context.json({ detail: requestError.message }, requestError.status as 400);
      }
    });
  };
  mountSessionRoutes(add, service);
  mountTrainingRoutes(add, service);
  mountSamplingRoutes(add, service);
  mountFutureRoutes(add, service);
  mountCheckpointRoutes(add, service);
}

function mountSessionRoutes(add: AddRoute, service: TinkerService): void {
  const { causalLM } = service.base.model;
  add("GET", "healthz", () => ({ status: "ok" }));
  add("POST", "client/config", () => CLIENT_CONFIG);
  add("POST", "client/dynamic_config", () => ({ refresh_interval_sec: 300, sample_cancel_enabled: true }));
  add("POST", "telemetry", () => ({ status: "accepted" }));
  add("GET", "get_server_capabilities", () => ({
    supported_models: [
      {
        model_name: service.base.name,
        max_context_length: causalLM.config.maxPositions,
        trainable: true,
        sampleable: true,
      },
    ],
  }));
  add("POST", "create_session", async (context) => {
    await readRequest(context, requests.createSessionRequest);
    const session = service.sessions.create(context.req.header("x-idempotency-key"));
    return { type: "create_session", session_id: session.id };
  });
  add("POST", "session_heartbeat", async (context) => {
    service.sessions.get((await readRequest(context, requests.sessionRequest)).session_id);
    return { type: "session_heartbeat" };
  });
  add("POST", "sessions/:id/finish", async (context) => {
    await service.sessions.finish(context.req.param("id")!);
    return {};
  });
}

function mountTrainingRoutes(add: AddRoute, service: TinkerService): void {
  const { causalLM } = service.base.model;
  add("POST", "create_model", async (context) =>
    service.training.createModel(await readRequest(context, requests.createModelRequest)),
  );
  add("POST", "get_info", async (context) => {
    const { model_id: id } = await readRequest(context, requests.modelRequest);
    const { form } = service.sessions.getModel(id);
    const { name } = service.base;
    return {
      type: "get_info",
      model_id: id,
      model_data: { arch: causalLM.config.modelType, model_name: name, tokenizer_id: name },
      model_name: name,
      is_lora: true,
      lora_rank: form.rank,
      optimizer_config: { type: "adamw" },
    };
  });
  add("POST", "forward_backward", async (context) => {
    if (!(context.req.header("content-type") ?? "").startsWith(PROTOBUF))
      throw new RequestError(415, `forward_backward takes ${PROTOBUF}, as the SDK sends it since version 0.25.`);
    return service.training.forwardBackward(decodeForwardBackward(await readBody(context)));
  });
  add("POST", "optim_step", async (context) =>
    service.training.optimStep(await readRequest(context, requests.optimStepRequest)),
  );
  add("POST", "save_weights", async (context) =>
    service.training.saveWeights(await readRequest(context, requests.saveWeightsRequest), "weights"),
  );
  add("POST", "save_weights_external", async (context) =>
    service.training.saveWeights(await readRequest(context, requests.saveWeightsRequest), "external_weights"),
  );
  add("POST", "save_weights_for_sampler", async (context) =>
    service.training.saveForSampler(await readRequest(context, requests.saveWeightsForSamplerRequest)),
  );
  add("POST", "load_weights", async (context) =>
    service.training.loadWeights(await readRequest(context, requests.loadWeightsRequest)),
  );
  add("POST", "unload_model", async (context) =>
    service.training.unloadModel((await readRequest(context, requests.modelRequest)).model_id),
  );
  add("POST", "create_custom_loss", () => {
    throw new RequestError(
      501,
      "The server does not compute losses from graphs of clients. forward_backward_custom computes them in the client.",
    );
  });
}

function mountSamplingRoutes(add: AddRoute, service: TinkerService): void {
  add("POST", "create_sampling_session", async (context) => {
    const body = await readRequest(context, requests.createSamplingSessionRequest);
    service.base.checkName(body.base_model);
    const session = service.sessions.get(body.session_id);
    const { id } = await service.sampling.createSession(session, body.sampling_session_seq_id, body.model_path);
    return { type: "create_sampling_session", sampling_session_id: id };
  });
  add("POST", "join_sampling_session", async (context) => {
    const { sampling_session_id: id } = await readRequest(context, requests.samplingSessionRequest);
    const entry = service.sessions.getSampling(id);
    return { client_counter: ++entry.clients };
  });
  add("GET", "samplers/:id", (context) => {
    const { id, path } = service.sessions.getSampling(context.req.param("id")!);
    return { sampler_id: id, base_model: service.base.name, ...(path !== undefined && { model_path: path }) };
  });
  add("POST", "asample", async (context) =>
    service.sampling.sample(await readRequest(context, requests.sampleRequest)),
  );
}

function mountFutureRoutes(add: AddRoute, { futures, sessions }: TinkerService): void {
  add("POST", "retrieve_future", async (context) => {
    const { request_id: id } = await readRequest(context, requests.retrieveFutureRequest);
    const lifetime = new RequestLifetime(context, LONG_POLL_MS);
    const result = await futures.retrieve(id, LONG_POLL_MS, lifetime.signal);
    lifetime.finish();
    if (result === undefined) return { type: "try_again", request_id: id, queue_state: "active" };
    if ("protobuf" in result) return context.body(result.protobuf, 200, { "content-type": PROTOBUF });
    return "json" in result ? result.json : { error: result.error, category: result.category };
  });
  add("POST", "retrieve_futures", async (context) => {
    const body = await readRequest(context, requests.retrieveFuturesRequest);
    const { id } = sessions.getSampling(body.target.sampling_session_id);
    futures.drop(body.retrieved_request_ids);
    const waitMs = Math.min(LONG_POLL_MS, 1000 * (body.timeout ?? Infinity));
    const lifetime = new RequestLifetime(context, LONG_POLL_MS + 1000);
    const log = getSampleLog(id, body.target.cloned_sampler_id ?? 0);
    const { ended, cursor } = await futures.listEnded(log, body.prev_cursor ?? 0, waitMs, lifetime.signal);
    lifetime.finish();
    return {
      cursor,
      completions: ended.map(({ requestId, failed, bytes }) => ({
        state: failed ? "failed" : "finished",
        request_id: requestId,
        response_payload_uncompressed_size: bytes,
      })),
    };
  });
  add("POST", "cancel_future", async (context) => {
    futures.cancel((await readRequest(context, requests.retrieveFutureRequest)).request_id);
    return {};
  });
}
