import { describe, expect, it } from "vitest";
import { answer, listen } from "../../../test/support/http-server.js";
import { LlamaGymError } from "../../core/errors.js";
import { spaceFromJson } from "../spaces/space-json.js";
import { HttpEnv } from "./http/http-env.js";
import { MAX_MESSAGE_BYTES, MAX_SPACE_ELEMENTS } from "./limits.js";
import { OpenEnvClient } from "./open-env/open-env-client.js";

const coin = { type: "Discrete", n: 2 };
const nested = (depth: number, open: string, close: string, inner: string) =>
  `${open.repeat(depth)}${inner}${close.repeat(depth)}`;

/** Descriptions of spaces as text, since some are too deep for JSON.stringify. */
const HOSTILE_SPACES: Readonly<Record<string, string>> = {
  null: "null",
  "a number": "7",
  "a list": "[]",
  "no type": "{}",
  "an unknown type": '{"type":"Sphere"}',
  "a type of Object's prototype": '{"type":"constructor"}',
  "a type that is not a string": '{"type":["Discrete"]}',
  "a Discrete without n": '{"type":"Discrete"}',
  "a Discrete of text": '{"type":"Discrete","n":"2"}',
  "a Discrete of 0": '{"type":"Discrete","n":0}',
  "a Discrete of 1e9": '{"type":"Discrete","n":1000000000}',
  "a Discrete of infinity": '{"type":"Discrete","n":1e999}',
  "a Discrete of fractions": '{"type":"Discrete","n":2.5}',
  "a Discrete with a start of null text": '{"type":"Discrete","n":2,"start":"0"}',
  "a Box of 1e9": '{"type":"Box","low":0,"high":1,"shape":[1000000000]}',
  "a Box of 1e5 x 1e5": '{"type":"Box","low":0,"high":1,"shape":[100000,100000]}',
  "a Box whose shape is a number": '{"type":"Box","low":0,"high":1,"shape":3}',
  "a Box whose shape is infinite": '{"type":"Box","low":0,"high":1,"shape":[1e999]}',
  "a Box of negative extent": '{"type":"Box","low":0,"high":1,"shape":[-1]}',
  "a Box of 1000 dimensions": `{"type":"Box","low":0,"high":1,"shape":[${Array(1000).fill(1).join()}]}`,
  "a Box without bounds": '{"type":"Box"}',
  "a Box with bounds of null": '{"type":"Box","low":null,"high":null,"shape":[1]}',
  "a Box with bounds of text": '{"type":"Box","low":["a"],"high":["b"]}',
  "a Box with ragged bounds": '{"type":"Box","low":[[0],[0,1]],"high":[[1],[1,2]]}',
  "a Box with mixed bounds": '{"type":"Box","low":[0,[1]],"high":[1,2]}',
  "a Box with NaN bounds": '{"type":"Box","low":["NaN"],"high":[1]}',
  "a Box with reversed bounds": '{"type":"Box","low":[2],"high":[1]}',
  "a Box with bounds of another shape": '{"type":"Box","low":[0,0],"high":[1,1],"shape":[3]}',
  "a Box of an unknown dtype": '{"type":"Box","low":0,"high":1,"dtype":"float8"}',
  "a Box with a dtype of Object's prototype": '{"type":"Box","low":0,"high":1,"dtype":"toString"}',
  "a MultiBinary of 1e9": '{"type":"MultiBinary","n":1000000000}',
  "a MultiBinary of text": '{"type":"MultiBinary","n":"many"}',
  "a MultiDiscrete of 1e9": '{"type":"MultiDiscrete","nvec":[1000000000,1000000000]}',
  "a MultiDiscrete of a number": '{"type":"MultiDiscrete","nvec":3}',
  "a MultiDiscrete of nothing": '{"type":"MultiDiscrete","nvec":[]}',
  "a Text of 1e9": '{"type":"Text","max_length":1000000000}',
  "a Text of infinity": '{"type":"Text","max_length":1e999}',
  "a Text with a charset of numbers": '{"type":"Text","max_length":5,"charset":[1,2]}',
  "a Text with a charset of a megabyte": `{"type":"Text","max_length":5,"charset":"${"a".repeat(2 ** 20)}"}`,
  "a Text whose minimum exceeds its maximum": '{"type":"Text","max_length":5,"min_length":6}',
  "a Tuple of an object": '{"type":"Tuple","spaces":{"a":{"type":"Discrete","n":2}}}',
  "a Tuple without spaces": '{"type":"Tuple"}',
  "a Tuple of 20,000 spaces": `{"type":"Tuple","spaces":[${Array(20_000).fill('{"type":"Discrete","n":2}').join()}]}`,
  "Tuples of Tuples of 2,500 spaces": `{"type":"Tuple","spaces":[${Array(50)
    .fill(`{"type":"Tuple","spaces":[${Array(50).fill('{"type":"Discrete","n":2}').join()}]}`)
    .join()}]}`,
  "a Dict of a list": '{"type":"Dict","spaces":[{"type":"Discrete","n":2}]}',
  "a Dict with a long name": `{"type":"Dict","spaces":{"${"a".repeat(5000)}":{"type":"Discrete","n":2}}}`,
  "a Dict with a wrong part": '{"type":"Dict","spaces":{"a":{"type":"Discrete","n":-1}}}',
  "an empty OneOf": '{"type":"OneOf","spaces":[]}',
  "a Sequence of nothing": '{"type":"Sequence"}',
  "a Graph of nothing": '{"type":"Graph"}',
  "Sequences 20,000 deep": nested(20_000, '{"type":"Sequence","space":', "}", '{"type":"Discrete","n":2}'),
  "Tuples 20,000 deep": nested(20_000, '{"type":"Tuple","spaces":[', "]}", '{"type":"Discrete","n":2}'),
  "bounds 20,000 deep": `{"type":"Box","low":${nested(20_000, "[", "]", "0")},"high":1}`,
  "spaces that add up": `{"type":"Tuple","spaces":[${Array(20).fill('{"type":"Discrete","n":1000000}').join()}]}`,
};

describe("a server that describes a hostile space", () => {
  it.each(Object.entries(HOSTILE_SPACES))("is refused over HTTP with one error: %s", async (_, space) => {
    for (const [observationSpace, actionSpace] of [
      [space, JSON.stringify(coin)],
      [JSON.stringify(coin), space],
    ]) {
      const spec = `{"protocol":1,"observationSpace":${observationSpace},"actionSpace":${actionSpace}}`;
      const error: unknown = await HttpEnv.connect(await answer({ "/spec": spec })).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(LlamaGymError);
      expect((error as LlamaGymError).code).toMatch(/^ENV_(?:INVALID|FAILED)$/);
      expect((error as LlamaGymError).message).toMatch(/^The environment at http:/);
      expect((error as LlamaGymError).message.length).toBeLessThan(2000);
    }
  });

  it.each(["a Discrete of 1e9", "Sequences 20,000 deep", "a Box with mixed bounds"])(
    "is refused over OpenEnv with one error: %s",
    async (name) => {
      const spaces = `"observationSpace":${HOSTILE_SPACES[name]},"actionSpace":${JSON.stringify(coin)}`;
      const schema = `{"action":{"x-llamagym":{"protocol":1,${spaces}}},"observation":{}}`;
      const connecting = OpenEnvClient.connect(await answer({ "/schema": schema }), { transport: "http" });
      await expect(connecting).rejects.toMatchObject({
        code: expect.stringMatching(/^ENV_(?:INVALID|FAILED)$/) as string,
      });
    },
  );

  it("names the part of a description that is wrong", () => {
    const wrong = { type: "Dict", spaces: { eyes: { type: "Tuple", spaces: [coin, { type: "Discrete", n: "2" }] } } };
    expect(() => spaceFromJson(wrong)).toThrow(/spaces\.eyes\.spaces\.1\.n: .*expected (?:int|number)/);
    const large = { type: "Box", low: 0, high: 255, shape: [2048, 2048, 4], dtype: "uint8" };
    expect(() => spaceFromJson(large, { maxElements: MAX_SPACE_ELEMENTS })).toThrow(
      /have 16777216 elements, at most 4194304/,
    );
  });

  it("is accepted up to the limits", async () => {
    const image = { type: "Box", low: 0, high: 255, shape: [1024, 1024, 4], dtype: "uint8" };
    const actionSpace = { type: "Discrete", n: MAX_SPACE_ELEMENTS };
    const env = await HttpEnv.connect(await answer({ "/spec": { protocol: 1, observationSpace: image, actionSpace } }));
    expect(env.text?.systemPrompt).toContain("a whole number from 0 to 4194303");
    expect(env.text?.parseAction("I choose 4194303")).toBe(4_194_303);
    expect(env.text?.parseAction("I choose 4194304")).toBeUndefined();
    await env.close();
  });
});

describe("a server that describes itself in wrong types", () => {
  it.each([
    [{ systemPrompt: 3 }, /systemPrompt: .*expected string/],
    [{ systemPrompt: "a".repeat(2 ** 21) }, /systemPrompt: Too big/],
    [{ actionNames: "left right" }, /actionNames: .*expected array/],
    [{ actionNames: ["left", 2] }, /actionNames\[1\]: .*expected string/],
    [{ actionNames: ["left"] }, /1 actionNames for the action space Discrete\(2\)/],
    [{ actionNames: Array(20_000).fill("left") }, /actionNames: Too big/],
    [{ renderModes: "ansi" }, /renderModes: .*expected array/],
  ])("is refused: %#", async (fields, message) => {
    const spec = { protocol: 1, observationSpace: coin, actionSpace: coin, ...fields };
    const connecting = HttpEnv.connect(await answer({ "/spec": spec }));
    await expect(connecting).rejects.toMatchObject({
      code: "ENV_INVALID",
      message: expect.stringMatching(message) as string,
    });
  });
});

/** Connects to a server whose /reset and /step answer as given. */
async function connect(
  replies: { reset?: unknown; step?: unknown },
  spec: object = {},
  timeout = 60_000,
): Promise<HttpEnv> {
  const url = await answer({
    "/spec": { protocol: 1, observationSpace: coin, actionSpace: coin, ...spec },
    "/reset": replies.reset ?? { observation: 0 },
    "/step": replies.step,
  });
  return HttpEnv.connect(url, { timeout });
}

describe("a server that answers a step in wrong types", () => {
  const step = { observation: 1, reward: 0, terminated: false };
  it.each([
    ["a list", [], /something other than an object/],
    ["a number", 3, /something other than an object/],
    ["nothing", "", /did not answer \/step with JSON/],
    [
      "an observation out of the structure",
      { ...step, observation: "left" },
      /does not match its space: "?left"? is not/,
    ],
    ["no observation", { ...step, observation: undefined }, /does not match its space: null is not/],
    [
      "a deep observation",
      `{"observation":${nested(20_000, "[", "]", "")},"reward":0,"terminated":false}`,
      /with JSON/,
    ],
    ["no reward", { ...step, reward: undefined }, /without a number for `reward`/],
    ["a reward of NaN", { ...step, reward: "NaN" }, /without a number for `reward`/],
    ["a reward of null", { ...step, reward: null }, /without a number for `reward`/],
    ["a reward of text", { ...step, reward: "1" }, /without a number for `reward`/],
    ["no terminated", { ...step, terminated: undefined }, /without a boolean for `terminated`/],
    ["terminated as a number", { ...step, terminated: 1 }, /without a boolean for `terminated`/],
    ["truncated as text", { ...step, truncated: "no" }, /without a boolean for `terminated` and `truncated`/],
  ])("fails with one error: %s", async (_, reply, message) => {
    const env = await connect({ step: reply });
    await env.reset();
    await expect(env.step(1)).rejects.toMatchObject({
      code: "ENV_FAILED",
      message: expect.stringMatching(message) as string,
    });
    await env.close();
  });

  it("can be reset after an invalid response", async () => {
    const env = await connect({ step: { ...step, reward: null } });
    await env.reset();
    await expect(env.step(1)).rejects.toMatchObject({ code: "ENV_FAILED" });
    expect(await env.reset()).toEqual({ observation: 0, info: {} });
  });

  it("fails when the pixels of a frame do not fit its size", async () => {
    const url = await answer({
      "/spec": { protocol: 1, observationSpace: coin, actionSpace: coin, renderModes: ["rgb_array"] },
      "/reset": { observation: 0 },
      "/render": { width: 1e9, height: 1e9, data: "AAAA" },
    });
    const env = await HttpEnv.connect(url);
    await env.reset();
    await expect(env.render("rgb_array")).rejects.toMatchObject({ code: "ENV_FAILED" });
  });
});

describe("a server that sends too much or nothing", () => {
  it("is refused when its description never ends", async () => {
    let sent = 0;
    const url = await listen((request, response) => {
      request.resume();
      const chunk = Buffer.alloc(2 ** 20, " ");
      const write = () => {
        while (!response.destroyed && response.write(chunk)) sent += chunk.length;
      };
      response.on("drain", write);
      write();
    });
    await expect(HttpEnv.connect(url)).rejects.toThrow(`answered /spec with more than ${MAX_MESSAGE_BYTES} bytes`);
    expect(sent).toBeLessThan(3 * MAX_MESSAGE_BYTES);
  });

  it("fails if a response ends in the middle", async () => {
    const url = await listen((request, response) => {
      request.resume();
      response.writeHead(200, { "content-type": "application/json" }).write('{"protocol": 1,');
    });
    await expect(HttpEnv.connect(url, { timeout: 200 })).rejects.toThrow(/did not answer \/spec within 200 ms/);
  });

  it("fails when it never answers a step", async () => {
    const url = await listen((request, response) => {
      request.resume();
      if (request.url === "/spec")
        response.end(JSON.stringify({ protocol: 1, observationSpace: coin, actionSpace: coin }));
      else if (request.url === "/reset") response.end('{"observation":0}');
    });
    const env = await HttpEnv.connect(url, { timeout: 1000 });
    await env.reset();
    await expect(env.step(0)).rejects.toThrow(/did not answer \/step within 1000 ms/);
  });

  it("is not followed to another address", async () => {
    let visited = 0;
    const target = await listen((_request, response) => void response.end(String(visited++)));
    const url = await listen((_request, response) => response.writeHead(307, { location: target }).end());
    await expect(HttpEnv.connect(url)).rejects.toThrow(/answered \/spec with status 307/);
    expect(visited).toBe(0);
  });

  it("is refused where an observation is longer than any context", async () => {
    const text = { type: "Text", max_length: 100, min_length: 0 };
    const env = await connect({ reset: { observation: "a".repeat(2 ** 21) } }, { observationSpace: text });
    const { observation, info } = await env.reset();
    expect(() => env.text?.formatObservation(observation, info)).toThrow(/2097152 characters as text, at most 1048576/);
  });
});

describe("an OpenEnv server with a hostile schema", () => {
  const open = async (action: unknown) =>
    OpenEnvClient.connect(await answer({ "/schema": { action, observation: {} } }), { transport: "http" });

  it("is refused when the schema is too long for a prompt", async () => {
    await expect(open({ description: "a".repeat(200_000) })).rejects.toThrow(
      /schema of \d+ characters, at most 100000/,
    );
  });

  it.each([
    ["refers to itself", { anyOf: [{ $ref: "#" }, { $ref: "#" }] }],
    ["refers to itself in lists", { type: "array", minItems: 2, items: { $ref: "#" } }],
    ["demands a long text", { type: "string", minLength: 1e9 }],
    ["demands a long list", { type: "array", minItems: 1e9 }],
    ["demands a negative length", { type: "string", minLength: -5 }],
  ])("fails when it is sampled, where it %s", async (_, schema) => {
    const { actionSpace } = await open(schema);
    expect(() => actionSpace.sample()).toThrow(LlamaGymError);
  });

  it("fails when an action is checked against a schema that refers to itself", async () => {
    const { actionSpace } = await open({ anyOf: [{ $ref: "#" }, { $ref: "#" }] });
    expect(() => actionSpace.contains({})).toThrow(/too complex/);
  });

  it.each([{ type: "constructor" }, { $ref: "#/constructor/prototype" }, { type: 3, enum: 4, required: 5, items: 6 }])(
    "ignores keywords of wrong types: %j",
    async (schema) => {
      const { actionSpace } = await open(schema);
      expect(actionSpace.contains({ move: "up" })).toBe(true);
      expect(actionSpace.toString()).toBe("Json()");
    },
  );
});
