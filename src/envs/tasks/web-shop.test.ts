import { describe, expect, it } from "vitest";
import { WebShopEnv } from "./web-shop.js";

/** Buys what the first line of the page asks for. */
function shop(env: WebShopEnv, seed: number): number {
  let { observation } = env.reset({ seed });
  const [, material, kind, color, size, budget] =
    /Buy a (\w+) (\w+), colour (\w+), size (\w+), for at most \$(\d+)/.exec(observation) ?? [];
  const visited = new Set<string>();
  const step = (command: string) => {
    const result = env.step(command);
    observation = result.observation;
    return result;
  };
  step(`search ${material} ${kind}`);
  for (;;) {
    const found = [...observation.matchAll(/^(p\d+): (\w+) (\w+), \$(\d+)$/gm)].find(
      ([, id, ...words]) =>
        !visited.has(id) && words[0] === material && words[1] === kind && Number(words[2]) <= Number(budget),
    );
    if (found === undefined) {
      step("click next page");
      continue;
    }
    visited.add(found[1]);
    step(`click ${found[1]}`);
    if (observation.includes(`[${color}]`) && observation.includes(`[${size}]`)) {
      step(`click ${color}`);
      step(`click ${size}`);
      return step("click buy now").reward;
    }
    step("click back to results");
  }
}

describe("WebShopEnv", () => {
  it("has a perfect purchase within the turns of every episode", () => {
    const env = new WebShopEnv();
    for (let seed = 0; seed < 100; seed++) expect(shop(env, seed)).toBe(1);
  });

  it("rewards the fraction of the goal that a purchase meets, and 0 for another kind of product", () => {
    const env = new WebShopEnv();
    const { observation } = env.reset({ seed: 3 });
    const kind = /Buy a \w+ (\w+)/.exec(observation)?.[1] ?? "";
    const buy = (query: string) => {
      env.reset({ seed: 3 });
      const id = /^(p\d+):/m.exec(env.step(`search ${query}`).observation)?.[1];
      env.step(`click ${id}`);
      return env.step("click buy now");
    };
    const own = buy(kind);
    expect(own.terminated).toBe(true);
    expect([0.2, 0.4, 0.6]).toContain(own.reward);
    expect(buy(kind === "mug" ? "lamp" : "mug").reward).toBe(0);
  });

  it("reports a link that the page does not have", () => {
    const env = new WebShopEnv({ turns: 3 });
    env.reset({ seed: 1 });
    expect(env.step("click buy now").observation).toContain('"click buy now" does nothing here.');
    expect(env.step("search unicorn").observation).toContain("Nothing was found.");
    expect(env.step("hello")).toMatchObject({ reward: 0, terminated: true });
  });

  it("lists the possible commands as choices", () => {
    const env = new WebShopEnv();
    env.reset({ seed: 1 });
    const { info } = env.step("search mug");
    const commands = info["commands"] as string[];
    expect(commands).toContain("click next page");
    expect(commands.filter((command) => /^click p\d\d$/.test(command))).toHaveLength(5);
  });
});
