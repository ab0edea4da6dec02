/** What a case asks of a side: the work's name and sizes, as JSON that Python reads too. */
export type Parameters = { work: string; [name: string]: unknown };

/** One line to a side's standard input: do the case's work `repeat` times. */
export type Request<P extends Parameters = Parameters> = P & { case: string; repeat: number };

/** What a side measured. */
export type Result = {
  /** One entry for each repetition. */
  seconds: number[];
  /** Units of work in one repetition: tokens, steps, turns, floating-point operations. */
  count: number;
  /**
   * Further figures, by name. A case's `parts` name those that both sides give; the others are
   * printed as they are.
   */
  values?: Record<string, number>;
};

/** One line from a side's standard output. */
export type Answer = Measurement | { error: string };

/** How a case's answers become its figure, and which way is better. */
export type Metric = { kind: "rate"; unit: string; scale?: number } | { kind: "seconds" } | { kind: "peak_bytes" };

/** A figure that the sides give among an answer's values, under the same name. */
export type Part = { name: string; unit: string; better: "higher" | "lower" };

/** An answer as the framework keeps it. */
export type Measurement = Result & { peak_rss: number };

export type BenchCase = {
  /** The figure's name in the table and in the JSON. */
  name: string;
  parameters: Parameters;
  metric: Metric;
  /** Additional figures from the same runs. */
  parts?: Part[];
  /** Unmeasured repetitions before the measured ones; 1 unless told. */
  warmup?: number;
  /** A new process for each run: for peak memory, and for what happens once in a process's life. */
  freshProcess?: boolean;
  /** Repetitions in one request: 1 unless told. */
  repeat?: number;
  /** Runs at most, where one takes minutes. */
  maxRuns?: number;
  /** The peers that have this case; default: those without `optIn`, [] for none. */
  peers?: string[];
  /** False for a figure that is no comparison. */
  ratio?: boolean;
};

export type Context = { root: string; threads: number };

/** Our side: a module below bench/ that calls serve(), run by Node. */
export type OurSide = { module: string; arguments?: (context: Context) => string[] };

/**
 * A peer's side: a Python script in bench/peers, run by one of the environments that bench:setup
 * makes there.
 */
export type PeerSide = {
  environment: string;
  script: string;
  arguments?: (context: Context) => string[];
  /** False for a peer that is shown but not compared with. */
  ratio?: boolean;
  /** Only for the cases that name it. */
  optIn?: boolean;
};

/** A figure's name and its value. */
export type Figures = Record<string, number>;

export type Bench = {
  name: string;
  /** A sentence above the table. */
  description: string;
  ours: OurSide;
  peers: Record<string, PeerSide>;
  /** Runs before the sides start; `peers` are those that are installed. */
  prepare?: (context: Context, peers: string[]) => Promise<void>;
  cases: BenchCase[];
  /** Figures computed from the measured ones, put under ours. */
  derive?: (ours: Figures, peers: Record<string, Figures>) => Figures;
};

export type Machine = { cpu: string; cores: number; memory_gb: number; node: string; os: string };

/**
 * What `--json` prints. A ratio above 1 is better for us, for times and memory too; of several
 * peers the best one counts.
 */
export type Report = {
  name: string;
  machine: Machine;
  ours: Figures;
  peers: Record<string, Figures>;
  ratios: Figures;
  units: Record<string, string>;
  /** Every measured second (or byte), in the order in which it was measured. */
  samples: Record<string, Record<string, number[]>>;
  /** What was not measured, and why. */
  notes: string[];
};
