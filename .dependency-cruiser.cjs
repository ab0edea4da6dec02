/** A folder of src/ is a layer; this table is ARCHITECTURE.md's: what each layer may import. */
const layers = {
  tensor: [],
  files: ["tensor"],
  text: ["files", "tensor"],
  kernels: ["tensor"],
  graph: ["tensor"],
  runtime: ["graph", "kernels", "tensor"],
  nn: ["graph", "tensor"],
  models: ["nn", "runtime", "files", "text", "graph", "tensor"],
  optim: ["runtime", "graph", "tensor"],
  generation: ["models", "text", "nn", "runtime", "graph", "kernels", "tensor"],
  envs: ["tensor"],
  rollout: ["generation", "envs", "text", "models", "kernels", "tensor"],
  algorithms: ["rollout", "generation", "models", "nn", "optim", "text", "runtime", "graph", "envs", "tensor"],
  agent: ["algorithms", "rollout", "generation", "models", "text", "envs", "tensor"],
  training: [
    "agent",
    "algorithms",
    "rollout",
    "envs",
    "tracking",
    "generation",
    "models",
    "optim",
    "files",
    "text",
    "tensor",
  ],
  tracking: ["files", "tensor"],
};

module.exports = {
  forbidden: [
    {
      name: "no-circular",
      comment: "operations are exempt: their gradient rules are written with one another",
      severity: "error",
      from: { pathNot: "^src/graph/ops/" },
      to: { circular: true },
    },
    ...Object.entries(layers).map(([layer, allowed]) => ({
      name: `layer-${layer}`,
      comment: `src/${layer}/ may import only ${allowed.map((name) => `src/${name}/`).join(", ") || "nothing above it"}`,
      severity: "error",
      from: { path: `^src/${layer}/`, pathNot: "\\.test\\.ts$" },
      to: { path: "^src/", pathNot: [`^src/(${[layer, ...allowed].join("|")})/`, "^src/errors\\.ts$"] },
    })),
    {
      name: "onnxruntime-only-in-runtime",
      severity: "error",
      from: { pathNot: "^src/runtime/" },
      to: { path: "onnxruntime" },
    },
    {
      name: "tests-are-not-imported",
      severity: "error",
      from: { pathNot: "\\.test\\.ts$" },
      to: { path: "\\.test\\.ts$" },
    },
  ],
  options: {
    moduleSystems: ["es6", "cjs"],
    doNotFollow: { path: "node_modules" },
    parser: "swc",
    tsPreCompilationDeps: true,
    enhancedResolveOptions: { extensions: [".ts", ".js"], conditionNames: ["import", "types", "default"] },
  },
};
