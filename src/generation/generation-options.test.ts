import { describe, expect, it, vi } from "vitest";
import { resolveOptions, type GenerationOptions } from "./generation-options.js";

describe("resolveOptions", () => {
  it("defaults to greedy decoding of 256 tokens", () => {
    expect(resolveOptions({})).toEqual({
      sampling: { temperature: 0, topK: 50, topP: 1, minP: 0, repetitionPenalty: 1 },
      maxNewTokens: 256,
      isLengthExplicit: false,
      stop: [],
    });
  });

  it("prefers the caller's options to generation_config.json", () => {
    const config = {
      do_sample: true,
      temperature: 0.7,
      top_p: 0.8,
      top_k: 20,
      repetition_penalty: 1.05,
      max_new_tokens: 9,
    };
    expect(resolveOptions({}, config)).toMatchObject({
      sampling: { temperature: 0.7, topK: 20, topP: 0.8, minP: 0, repetitionPenalty: 1.05 },
      maxNewTokens: 9,
      isLengthExplicit: false,
    });
    expect(resolveOptions({ temperature: 0, topK: 0, maxNewTokens: 3 }, config)).toMatchObject({
      sampling: { temperature: 0, topK: 0, topP: 0.8 },
      maxNewTokens: 3,
      isLengthExplicit: true,
    });
  });

  it("samples if a sampling option is set", () => {
    for (const options of [{ seed: 1 }, { topP: 0.9 }, { topK: 3 }, { minP: 0.1 }])
      expect(resolveOptions(options).sampling.temperature).toBe(1);
    expect(resolveOptions({ seed: 1 }, { temperature: 0.6 }).sampling.temperature).toBe(0.6);
    expect(resolveOptions({}, { do_sample: true, top_k: -1, top_p: 0 }).sampling).toMatchObject({ topK: 0, topP: 0 });
    expect(resolveOptions({}, { temperature: 0.6, top_k: null }).sampling).toMatchObject({ temperature: 0, topK: 50 });
  });

  it("applies filters to choices only if the caller sets them", () => {
    const config = { do_sample: true, top_k: 2, top_p: 0.5, repetition_penalty: 2 };
    const { sampling } = resolveOptions({ choices: ["a", "b"] }, config);
    expect(sampling).toEqual({ temperature: 1, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 });
    expect(resolveOptions({ choices: ["a", "b"], topK: 3 }, config).sampling.topK).toBe(3);
  });

  it.each([
    [{ temperature: -1 }, "`temperature` must be 0 or a number >= 0.000001 and <= 100, got -1."],
    [{ temperature: NaN }, "`temperature` must be 0 or a number >= 0.000001 and <= 100, got NaN."],
    [{ topP: 1e-7 }, "`topP` must be 0 or a number >= 0.000001 and <= 1, got 1e-7."],
    [{ topK: 1.5 }, "`topK` must be an integer >= 0, got 1.5."],
    [{ maxNewTokens: 0 }, "`maxNewTokens` must be an integer >= 1, got 0."],
    [{ minP: 2 }, "`minP` must be 0 or a number >= 0.000001 and <= 1, got 2."],
    [{ seed: -4 }, "`seed` must be an integer >= 0 and <= 281474976710656, got -4."],
    [{ stop: "" }, '`stop` must be a list of non-empty strings, got [""].'],
    [{ stopTokenIds: [-1] }, "`stopTokenIds` must be token ids, got [-1]."],
    [{ choices: ["a"], stop: "b" }, "`choices` is incompatible with `stop`"],
    [{ contextOverflow: "middle" }, '`contextOverflow` must be "error" or "drop-oldest", got "middle".'],
    [{ max_new_tokens: 3 }, 'Generation has no option "max_new_tokens". Did you mean maxNewTokens?'],
  ])("rejects %j", (options, message) => {
    expect(() => resolveOptions(options as GenerationOptions)).toThrowError(
      expect.objectContaining({ code: "INVALID_ARGUMENT", message: expect.stringContaining(message) as string }),
    );
  });

  it("names fields of generation_config.json that Transformers has and llamagym does not, once", () => {
    const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
    const neutral = { num_beams: 1, min_length: 0, bad_words_ids: [], sequence_bias: {}, forced_eos_token_id: null };
    resolveOptions(
      {},
      { ...neutral, token_healing: false, eos_token_id: 2, max_length: 20, transformers_version: "4" },
    );
    expect(warn).not.toHaveBeenCalled();
    const config = { ...neutral, num_beams: 4, no_repeat_ngram_size: 3, suppress_tokens: [1], forced_bos_token_id: 0 };
    resolveOptions({}, config);
    resolveOptions({}, config);
    expect(warn.mock.calls).toEqual([
      [expect.stringContaining("sets num_beams, no_repeat_ngram_size, suppress_tokens, forced_bos_token_id, which")],
    ]);
    warn.mockRestore();
  });

  it("names the file of an invalid value", () => {
    expect(() => resolveOptions({}, { do_sample: true, top_p: 7 })).toThrowError(
      expect.objectContaining({
        code: "FILE_CORRUPT",
        message: expect.stringMatching(/generation_config.json.*top_p.*7/) as string,
      }),
    );
  });
});
