import { describe, expect, it } from "vitest";
import { boolean, choice, defineSettings, list, number, text } from "../../../core/settings.js";
import { checkRequiredOptions, parseCommandArgs } from "./parse-args.js";

const table = defineSettings({
  learningRate: number({ description: "Rate.", aliases: ["stepSize"] }),
  topP: number({ above: 0, max: 1, description: "Mass." }),
  quantize: choice({
    choices: ["none", "8"],
    description: "Bits.",
    aliases: [{ name: "loadIn8bit", value: "8" }],
  }),
  json: boolean({ description: "JSON." }),
  device: choice({ choices: ["cpu", "webgpu"], description: "Device." }),
  option: list({ short: "o", description: "Option." }),
  model: text({ required: true, description: "Model." }),
});

const parse = (line: string) => parseCommandArgs(table, line.split(" "));

describe("parseCommandArgs", () => {
  it.each([
    ["--learning-rate 1e-4", { learningRate: 1e-4 }],
    ["--learning-rate=-0.5", { learningRate: -0.5 }],
    ["--learning-rate -0.5", { learningRate: -0.5 }],
    ["--learningRate 1", { learningRate: 1 }],
    ["--learning_rate 1", { learningRate: 1 }],
    ["--learning_rate=0.001 --top_p=0.9 --json=True", { learningRate: 0.001, topP: 0.9, json: true }],
    ["--json False --top_p 1", { json: false, topP: 1 }],
    ["--step-size 1 --stepSize 2", { learningRate: 2 }],
    ["--json", { json: true }],
    ["--json false", { json: false }],
    ["--json=true --device cpu", { json: true, device: "cpu" }],
    ["--no-json", { json: false }],
    ["--load_in_8bit", { quantize: "8" }],
    ["-o a=1 --option b=2 -oc=3", { option: ["a=1", "b=2", "c=3"] }],
    ["--model -", { model: "-" }],
    ["--model=--x", { model: "--x" }],
  ])("reads %s", (line, values) => {
    expect(parse(line)).toEqual({ values, positionals: [] });
  });

  it("returns positional arguments, and everything after --", () => {
    expect(parse("a --json b -- --model")).toEqual({ values: { json: true }, positionals: ["a", "b", "--model"] });
  });

  it.each([
    ["--learnin-rate 1", "There is no option --learnin-rate. Did you mean --learning-rate?"],
    ["--lr 1", "There is no option --lr. Did you mean --learning-rate?"],
    ["--unrelated", "There is no option --unrelated. Add --help-all to list all options."],
    ["--model", "--model needs a value: Model."],
    ["--model --json", "--model needs a value: Model."],
    ["-x 1", "There is no option -x."],
    ["--load-in-8bit --quantize none", "--load-in-8bit sets --quantize, which is also given."],
    ["--json=1", "--json must be true or false, got 1."],
    ["--no-json=true", "--no-json takes no value."],
    ["--no-model", "There is no option --no-model. Did you mean --model?"],
    ["--device mps", "--device must be cpu or webgpu, got mps. "],
    ["--top-p 2", "--top-p must be a number > 0 and <= 1, got 2."],
    ["--top-p abc", "--top-p must be a number > 0 and <= 1, got abc."],
  ])("rejects %s", (line, message) => {
    expect(() => parse(line)).toThrow(message);
  });

  it("reports a missing required option", () => {
    expect(() => checkRequiredOptions(table, {})).toThrow("--model is missing: Model.");
    expect(checkRequiredOptions(table, { model: "m" })).toBeUndefined();
  });
});
