// The steps of the first hour, in reading order. Commands and programs are taken from the pages; a
// command that a page no longer contains fails at once.
import { readFileSync } from "node:fs";
import { join } from "node:path";

const ESBUILD =
  "npx esbuild program.ts --bundle --platform=node --format=esm --outfile=bundle.mjs --external:llamagym --external:onnxruntime-node";
const BUNDLED_PROGRAM = `import { AutoModelForCausalLM } from "llamagym";
const model = await AutoModelForCausalLM.fromPretrained("embedded");
console.log("opened");
await model.close();
`;
const BLACKJACK_STAY = -0.132;
const GREEDY = /greedy mean return (-?[\d.]+)/;

/** Checks the last number that matches against a bound. */
const above = (pattern, bound) => (printed) => {
  const numbers = Array.from(printed.matchAll(new RegExp(pattern, "gm")), ([, number]) => Number(number));
  return numbers.length > 0 && numbers.at(-1) > bound
    ? undefined
    : `${pattern} above ${bound}, got ${numbers.join(", ")}`;
};

export function prepareSteps(root) {
  const read = (page) => readFileSync(join(root, page), "utf8");
  const blocks = (page, file) => {
    const fences = read(page).matchAll(/^(`{3,})ts(?: (\S+))?\n([\s\S]*?)^\1$/gm);
    return Array.from(fences).flatMap(([, , name, code]) => (name === file ? [code] : []));
  };
  /** A command that the page contains. `llamagym` is npx llamagym in a project. */
  const written = (page, command) => {
    const text = read(page).replaceAll(/ +#.*$/gm, "");
    if (!text.includes(`${command}\n`)) throw new Error(`${page} does not contain: ${command}`);
    return command.replace(/^llamagym/, "npx llamagym");
  };
  /** Compiles and runs programs of a page. */
  const program = (page, name, files, { run = name, ...step }) => ({
    title: `${page}: ${run}.ts`,
    files: Object.fromEntries(Object.entries(files).map(([file, code]) => [file, code.join("\n")])),
    command: `npx tsc && node ${run}.js`,
    ...step,
  });
  const command = (page, line, step = {}) => ({ title: `${page}: ${line}`, command: written(page, line), ...step });

  /** Creates a project as a user does, with the packed package, and type-checks it strictly. */
  const template = (name, start, expect) => {
    const inProject = (line) => `cd my-${name} && ${line}`;
    return [
      {
        title: `npm create llamagym my-${name} -- --template ${name}`,
        command: [
          `npm create llamagym my-${name} -- --template ${name}`,
          `cd my-${name}`,
          'npm pkg set "dependencies.llamagym=file:$LLAMAGYM_PACKAGE"',
          "npm install --no-audit --no-fund",
          ...["7", "5.9"].map((version) => `npm exec --yes --package=typescript@${version} -- tsc --noEmit`),
        ].join(" && "),
        expect: [/npm start/],
      },
      { title: `${name}: ${start}`, command: inProject(start), expect, isLong: start === "npm start" },
    ];
  };

  const questions = Array.from({ length: 4 }, (_, i) => JSON.stringify({ prompt: `${i} + 2 =`, answer: i + 2 }));
  const steps = [
    command("README.md", "npx llamagym train blackjack --output runs/first", {
      expect: [/100%/, /Saved runs\/first\/adapter/],
      expectFiles: ["runs/first/adapter/adapter_model.safetensors", "runs/first/metrics.jsonl"],
      isLong: true,
    }),
    command("README.md", "npx llamagym play blackjack --agent --adapter runs/first/adapter", {
      expect: [/return/i],
      isLong: true,
    }),
    program(
      "README.md",
      "readme",
      { "readme.ts": blocks("README.md") },
      {
        expect: [/hand \d+: mean score/, above(GREEDY, BLACKJACK_STAY + 0.02)],
        expectFiles: ["adapter/adapter_config.json", "run"],
        isLong: true,
      },
    ),
    ...["envs", "models", "doctor"].map((name) => command("README.md", `npx llamagym ${name}`, { expect: [/\w/] })),
    command("docs/first-agent.md", "llamagym envs blackjack", { expect: [/hit/] }),
    command("docs/first-agent.md", "llamagym play blackjack --agent", { expect: [/return/i] }),
    command(
      "docs/first-agent.md",
      "llamagym train blackjack --episodes 20000 --eval-episodes 2000 --output runs/tutorial",
      {
        expect: [above(/after training, greedy +(-?[\d.]+)/, BLACKJACK_STAY + 0.03)],
        isLong: true,
      },
    ),
    program(
      "docs/first-agent.md",
      "tutorial",
      { "tutorial.ts": blocks("docs/first-agent.md") },
      {
        expect: [above(/^(-?[\d.]+) ± /m, BLACKJACK_STAY + 0.02)],
        isLong: true,
      },
    ),
    program(
      "docs/environments/writing-your-own.md",
      "check",
      {
        "own-env.ts": blocks("docs/environments/writing-your-own.md", "own-env.ts"),
        "check.ts": blocks("docs/environments/writing-your-own.md", "check.ts"),
      },
      { expect: [/\[\]/] },
    ),
    command("docs/environments/writing-your-own.md", "npx llamagym train ./own-env.ts", {
      expect: [above(/100%.* return ([\d.]+)/, 0.99)],
    }),
    program(
      "docs/algorithms/writing-your-own.md",
      "use-a2c",
      {
        "a2c.ts": blocks("docs/algorithms/writing-your-own.md", "a2c.ts"),
        "use-a2c.ts": blocks("docs/algorithms/writing-your-own.md"),
      },
      {},
    ),
    command("docs/algorithms/writing-your-own.md", "llamagym train --algorithm ./a2c.js --help-all", {
      expect: [/--value-coef/],
    }),
    program("docs/algorithms/ppo.md", "ppo", { "ppo.ts": blocks("docs/algorithms/ppo.md") }, {}),
    program(
      "docs/algorithms/reward-functions.md",
      "questions",
      {
        "questions.jsonl": [`${questions.join("\n")}\n`],
        "questions.ts": blocks("docs/algorithms/reward-functions.md").map((code) =>
          code.replace("maxSteps: 200", "maxSteps: 4"),
        ),
      },
      { expectFiles: ["runs/questions/adapter/adapter_model.safetensors"] },
    ),
    program(
      "docs/tracking.md",
      "tracked",
      { "tracked.ts": blocks("docs/tracking.md", "trainer.ts") },
      {
        expectFiles: ["runs/tracked/metrics.jsonl"],
      },
    ),
    program(
      "docs/demonstrations.md",
      "demonstrated",
      { "demonstrated.ts": blocks("docs/demonstrations.md") },
      {
        expect: [/\d/],
      },
    ),
    command("docs/demonstrations.md", "llamagym demos FrozenLake-v1 --episodes 50 --output lake.jsonl", {
      expectFiles: ["lake.jsonl"],
    }),
    {
      title: "docs/sft.md: sft.ts",
      command: "npx llamagym demos blackjack --episodes 20 --output demos.jsonl && npx tsc && node sft.js",
      files: { "sft.ts": blocks("docs/sft.md").join("\n") },
      expectFiles: ["adapter/adapter_config.json"],
    },
    program(
      "docs/generation.md",
      "generation",
      { "generation.ts": blocks("docs/generation.md") },
      {
        expectFiles: ["merged/model.safetensors"],
      },
    ),
    program(
      "docs/constrained-decoding.md",
      "constrained",
      {
        "constrained.ts": [...blocks("docs/constrained-decoding.md"), "console.log(one.text, two.text, action);"],
      },
      { expect: [/hit|stay/] },
    ),
    program(
      "docs/extraction.md",
      "extraction",
      {
        "extraction.ts": [
          ...blocks("docs/extraction.md"),
          'console.log(extractAction("Next step: take lamp", ownOrder));',
        ],
      },
      { expect: [/take lamp/] },
    ),
    {
      title: "docs/installation.md: a bundle with the externals runs",
      files: { "program.ts": BUNDLED_PROGRAM },
      command: `${written("docs/installation.md", ESBUILD)} && node bundle.mjs`,
      expect: [/opened/],
    },
    {
      title: "docs/installation.md: a bundle without llamagym's external ends with the setting's name",
      command: `${ESBUILD.replace("--external:llamagym ", "--external:ws ")} && node bundle.mjs`,
      status: 1,
      expect: [/RUNTIME_FAILED.*external/s],
    },
    ...template("blackjack", "npm start", [above(GREEDY, BLACKJACK_STAY)]),
    ...template("own-env", "npm start", [above(/100%.* return ([\d.]+)/, 0.9), /curve.svg|adapter/]),
    { title: "own-env: npm test", command: "cd my-own-env && npm test", expect: [/pass 3/] },
    ...template("ai-sdk-agent", "npm start", [above(GREEDY, -0.3)]),
    ...template("mcp-tools", "npm start", [above(GREEDY, 0.5)]),
  ];
  return { steps, hubModels: ["HuggingFaceTB/SmolLM2-135M-Instruct", "Qwen/Qwen2.5-0.5B-Instruct"] };
}
