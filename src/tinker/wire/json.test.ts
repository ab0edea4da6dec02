import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { ZodType } from "zod";
import * as requests from "./requests.js";
import * as responses from "./responses.js";

interface Exchange {
  readonly path: string;
  readonly request: Readonly<Record<string, unknown>> | null;
  readonly response: Readonly<Record<string, unknown>> | null;
}

/** Exchanges between the official SDK 0.38.0 and a server; a protobuf body is null. */
const exchanges = JSON.parse(
  readFileSync(new URL("../../../test/fixtures/tinker/exchanges.json", import.meta.url), "utf8"),
) as Exchange[];

const requestSchemas: Readonly<Partial<Record<string, ZodType>>> = {
  create_session: requests.createSessionRequest,
  session_heartbeat: requests.sessionRequest,
  create_model: requests.createModelRequest,
  get_info: requests.modelRequest,
  optim_step: requests.optimStepRequest,
  save_weights: requests.saveWeightsRequest,
  save_weights_for_sampler: requests.saveWeightsForSamplerRequest,
  load_weights: requests.loadWeightsRequest,
  create_sampling_session: requests.createSamplingSessionRequest,
  asample: requests.sampleRequest,
  retrieve_future: requests.retrieveFutureRequest,
  retrieve_futures: requests.retrieveFuturesRequest,
  weights_info: requests.weightsInfoRequest,
  copy_weights: requests.copyWeightsRequest,
  join_sampling_session: requests.samplingSessionRequest,
  ttl: requests.ttlRequest,
};

const responseSchemas: Readonly<Partial<Record<string, ZodType>>> = {
  "client/config": responses.clientConfig,
  get_server_capabilities: responses.serverCapabilities,
  create_session: responses.createSessionResponse,
  create_model: responses.untypedFuture,
  forward_backward: responses.untypedFuture,
  optim_step: responses.untypedFuture,
  save_weights: responses.untypedFuture,
  save_weights_for_sampler: responses.untypedFuture,
  load_weights: responses.untypedFuture,
  asample: responses.untypedFuture,
  get_info: responses.getInfoResponse,
  create_sampling_session: responses.createSamplingSessionResponse,
  "samplers/sess-0:sample:2": responses.getSamplerResponse,
  weights_info: responses.weightsInfo,
};

describe("JSON of the Tinker API", () => {
  it.each(exchanges)("is read as the SDK writes it: $path", ({ path, request, response }) => {
    const readable = [
      [requestSchemas[path], request],
      [responseSchemas[path], response],
    ] as const;
    const issues = readable.flatMap(([schema, value]) =>
      schema === undefined || value === null ? [] : (schema.safeParse(value).error?.issues ?? []),
    );
    expect(issues).toEqual([]);
  });

  it("distinguishes the results of a future", () => {
    const results = exchanges.flatMap(({ path, response }) =>
      path === "retrieve_future" && response !== null ? [response] : [],
    );
    const failed = results.filter((result) => responses.requestFailed.safeParse(result).success);
    expect(failed.length).toBeGreaterThan(0);
    for (const schema of [responses.tryAgain, responses.completeMetadata])
      expect(results.some((result) => schema.safeParse(result).success)).toBe(false);
    const tryAgain = { type: "try_again", request_id: "a", queue_state: "active" };
    expect(responses.tryAgain.parse(tryAgain)).toEqual(tryAgain);
    expect(responses.completeMetadata.parse({ status: "complete_metadata" })).toEqual({ status: "complete_metadata" });
    for (const schema of [responses.tryAgain, responses.completeMetadata])
      expect(schema.safeParse({ type: "request_failed" }).success).toBe(false);
    const metrics = results.find((result) => "metrics" in result);
    expect(responses.optimStepResponse.parse(metrics).metrics).toHaveProperty("grad_norm:mean");
    const kinds = [responses.createModelResponse, responses.savedWeights, responses.loadWeightsResponse];
    for (const schema of kinds) expect(results.some((result) => schema.safeParse(result).success)).toBe(true);
  });

  it("has the SDK's defaults", () => {
    const { adam_params: params } = requests.optimStepRequest.parse({ model_id: "m", adam_params: {} });
    expect(params).toEqual({
      learning_rate: 1e-4,
      beta1: 0.9,
      beta2: 0.95,
      eps: 1e-12,
      weight_decay: 0,
      grad_clip_norm: 0,
    });
    expect(requests.loraConfig.parse({ rank: 8 })).toMatchObject({ train_unembed: true, train_mlp: true });
    expect(responses.clientConfig.parse({})).toMatchObject({ fwdbwd_max_chunk_len: 1024 });
  });

  it("lists checkpoints and the files of one", () => {
    const checkpoint = {
      checkpoint_id: "weights/step3",
      checkpoint_type: "training",
      time: "2026-01-01T00:00:00Z",
      tinker_path: "tinker://sess-0:train:0/weights/step3",
    };
    expect(responses.checkpointList.parse({ checkpoints: [checkpoint] }).checkpoints).toEqual([checkpoint]);
    const urls = { "adapter_model.safetensors": "http://127.0.0.1/adapter_model.safetensors" };
    expect(responses.externalWeightsUrls.parse({ urls }).urls).toEqual(urls);
  });

  it("ignores fields of later releases", () => {
    expect(requests.sessionRequest.parse({ session_id: "s", invented: 1 })).toEqual({ session_id: "s" });
  });
});
