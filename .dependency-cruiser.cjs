/** The areas of src/ and what each may import; the same table is in ARCHITECTURE.md. */
const areas = {
  core: [],
  engine: ["core"],
  models: ["core", "engine"],
  generation: ["core", "engine", "models"],
  envs: ["core"],
  "text-world": ["core", "envs"],
  tinker: ["core", "engine", "models", "generation"],
  rl: ["core", "engine", "models", "generation", "envs", "tinker"],
  app: ["core", "engine", "models", "generation", "envs", "text-world", "tinker", "rl"],
};

/** Folders of an area in order: each may import those on its left only. */
const innerOrder = {
  engine: [["tensor"], ["graph"], ["gpu"], ["runtime", "nn"], ["optim"]],
  models: [["files"], ["text"], ["architectures"], ["weights"], ["adapters"], ["graphs"], ["export"], ["registry"]],
  generation: [["constraints"], ["cache"], ["sampling"], ["prompt"]],
  envs: [
    ["spaces", "rendering"],
    ["check"],
    ["wrappers"],
    ["registry"],
    ["solvers", "toy-text", "classic-control", "tasks", "games"],
    ["reasoning", "baby-ai"],
    ["vector", "bridges"],
  ],
  tinker: [["wire"], ["client"]],
  app: [
    ["tracking", "server", "judge"],
    ["gateway", "tinker"],
    ["runs"],
    ["sweeps", "distributed"],
    ["dashboard"],
    ["cli"],
  ],
  rl: [["rollout"], ["tools"], ["tracking", "algorithms", "data"], ["agent"], ["train"], ["preferences"]],
};

const notTests = "\\.test\\.ts$";

/** The parts of src/ that run on Node alone. */
const nodeOnly = ["^src/core/platform/node/", "^src/app/", "^src/envs/bridges/", "^src/envs/rendering/png\\.ts$"];

const areaRules = Object.entries(areas).map(([area, allowed]) => ({
  name: `area-${area}`,
  comment: `src/${area}/ may import only ${allowed.map((name) => `src/${name}/`).join(", ") || "itself"}`,
  severity: "error",
  from: { path: `^src/${area}/`, pathNot: notTests },
  to: { path: "^src/", pathNot: [`^src/(${[area, ...allowed].join("|")})/`] },
}));

const orderRules = Object.entries(innerOrder).flatMap(([area, groups]) =>
  groups.flatMap((folders, i) => {
    const later = groups.slice(i + 1).flat();
    if (later.length === 0) return [];
    return {
      name: `order-${area}-${folders.join("-")}`,
      comment: `src/${area}/${folders.join(", ")} may not import ${later.join(", ")}`,
      severity: "error",
      from: { path: `^src/${area}/(${folders.join("|")})/`, pathNot: notTests },
      to: { path: `^src/${area}/(${later.join("|")})/` },
    };
  }),
);

/** Another area is imported by an index.ts; everything may import files of core. */
const doorRules = Object.entries(areas).map(([area]) => ({
  name: `doors-${area}`,
  comment: "import src/AREA/index.ts or src/AREA/FOLDER/index.ts of another area, and add the name there",
  severity: "error",
  from: { path: `^src/${area}/`, pathNot: notTests },
  to: {
    path: "^src/[^/]+/",
    pathNot: [`^src/(core|${area})/`, "^src/[^/]+/index\\.ts$", "^src/[^/]+/[^/]+/index\\.ts$"],
    dynamic: false,
  },
}));

module.exports = {
  forbidden: [
    {
      name: "no-circular",
      comment: "operations are exempt: their gradient rules are written with one another",
      severity: "error",
      from: { pathNot: "^src/engine/graph/ops/" },
      to: { circular: true },
    },
    ...areaRules,
    ...orderRules,
    ...doorRules,
    {
      name: "engines-only-in-runtime",
      severity: "error",
      from: { pathNot: "^src/engine/runtime/" },
      to: { path: "onnxruntime|^webgpu|node_modules/webgpu/" },
    },
    {
      name: "node-only-in-platform",
      comment: "import `#platform` instead (src/core/platform/ports.ts)",
      severity: "error",
      from: { path: "^src/", pathNot: [notTests, ...nodeOnly] },
      to: { dependencyTypes: ["core"] },
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
