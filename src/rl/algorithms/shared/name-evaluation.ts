/** Metrics of an evaluation: `eval_loss`, ... */
export type EvaluationOf<Metrics> = {
  readonly [Name in keyof Metrics & string as `eval_${Name}`]: Metrics[Name];
};

/** Prefixes the names of metrics with `eval_`. */
export function nameEvaluation<Metrics extends object>(metrics: Metrics): EvaluationOf<Metrics> {
  const named = Object.entries(metrics).map(([name, value]) => [`eval_${name}`, value as unknown]);
  return Object.fromEntries(named) as EvaluationOf<Metrics>;
}
