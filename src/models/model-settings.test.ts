import { describe, expect, it } from "vitest";
import { resolveSettings } from "../core/settings.js";
import { parseLoraOptions, tuningSettings } from "./model-settings.js";

const layersOf = (layersToTransform?: string) =>
  parseLoraOptions(resolveSettings("A test", tuningSettings, { layersToTransform })).layersToTransform;

describe("parseLoraOptions", () => {
  it.each([
    [undefined, []],
    ["all", []],
    ["0,3-5", [0, 3, 4, 5]],
    ["last-3", [-3, -2, -1]],
  ])("reads layers %s", (text, layers) => {
    expect(layersOf(text)).toEqual(layers);
  });

  it.each(["5-3", "last-0", "last-", "-1", "last-99999"])("rejects layers %s", (text) => {
    expect(() => layersOf(text)).toThrow(`such as 22-29, 0,1,5, last-4 or all, got "${text}".`);
  });
});
