export { type BenchIo, benchCommand } from './bench-command.ts';
export type { BenchOptions } from './bench-options.ts';
export { type BenchReport, type BenchResult, runBench, type ServeCommand } from './run-bench.ts';
