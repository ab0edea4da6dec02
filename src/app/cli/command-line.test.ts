import { describe, expect, it } from "vitest";
import { findProgram } from "./command-line.js";

describe("findProgram", () => {
  it.each([
    ["/usr/local/bin/llamagym", { PATH: "/bin:/usr/local/bin" }, "llamagym"],
    ["/project/node_modules/.bin/llamagym", { PATH: "/project/node_modules/.bin:/bin" }, "npx llamagym"],
    [
      "/project/node_modules/llamagym/dist/app/cli/bin.js",
      { npm_config_user_agent: "npm/10.1.0 node" },
      "npx llamagym",
    ],
    ["/project/node_modules/.bin/llamagym", { npm_config_user_agent: "pnpm/9.0.0 npm/?" }, "pnpm exec llamagym"],
    ["/project/node_modules/.bin/llamagym", { npm_config_user_agent: "yarn/4.0.0" }, "yarn llamagym"],
  ])("of %s with %j is %s", (script, env, program) => {
    expect(findProgram(script, env)).toBe(program);
  });

  it("is node with the path of the command in a clone", () => {
    expect(findProgram("/clone/dist/app/cli/bin.js", { PATH: "/bin" })).toMatch(/^node \S*bin\.js$/);
  });
});
