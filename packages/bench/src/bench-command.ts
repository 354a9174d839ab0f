import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { UsageError } from '@keelson/core/internal';
import { benchHelp, parseBenchOptions } from './bench-options.ts';
import { htmlReport } from './html-report.ts';
import { short } from './plot.ts';
import { type BenchReport, runBench, type ServeCommand } from './run-bench.ts';

/** Streams and signals of `keelson bench`, and the command line of the program that it starts as a server. */
export interface BenchIo {
  readonly serve: ServeCommand;
  readonly stdout: (text: string) => void;
  readonly stderr: (text: string) => void;
  /** Resolves when the process has received SIGTERM or SIGINT. */
  readonly terminated: Promise<void>;
}

/**
 * Runs `keelson bench`.
 *
 * @returns true when every scenario was measured on every server. @throws UsageError
 */
export async function benchCommand(words: readonly string[], io: BenchIo): Promise<boolean> {
  if (words.includes('--help') || words.includes('-h')) {
    io.stdout(benchHelp);
    return true;
  }
  const { options, out } = await parseBenchOptions(words);
  try {
    await mkdir(out, { recursive: true });
  } catch (error) {
    throw new UsageError(`--out ${out} cannot be created: ${(error as Error).message}`);
  }
  const ending = new AbortController();
  void io.terminated.then(() => ending.abort(new Error('ended on request; nothing was written')));
  const progress = (text: string) => io.stderr(`bench: ${text}\n`);
  const report = await runBench(options, { serve: io.serve, progress, signal: ending.signal });
  await writeFile(join(out, 'report.json'), `${JSON.stringify(report, null, 2)}\n`);
  await writeFile(join(out, 'report.html'), htmlReport(report));
  io.stdout(`${table(report)}\n${join(out, 'report.html')}\n`);
  return report.results.every(({ failed }) => failed === undefined);
}

function table({ results }: BenchReport): string {
  const rows = [
    ['scenario', 'server', 'per second', 'p50 ms', 'p99 ms', 'server CPU us'],
    ...results.map(({ scenario, subject, perSecond, p50Ms, p99Ms, cpuMicros, failed }) =>
      failed === undefined
        ? [
            scenario,
            subject,
            ...[perSecond.median, p50Ms, p99Ms].map(short),
            cpuMicros === undefined ? '' : short(cpuMicros),
          ]
        : [scenario, subject, failed],
    ),
  ];
  const widths = [0, 1, 2, 3, 4].map((column) =>
    Math.max(...rows.map((row) => (row.length > 3 ? (row[column]?.length ?? 0) : 0))),
  );
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
