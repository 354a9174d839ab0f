import { execFileSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseOptions } from './options.ts';
import { markdown } from './report/report.ts';
import { runBenchmarks } from './run-benchmarks.ts';

const progress = (text: string): void => {
  process.stderr.write(process.stderr.isTTY ? `\r\u001b[K${text}` : `${text}\n`);
};

function commit(): string {
  try {
    return execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim();
  } catch {
    return 'unknown';
  }
}

try {
  const options = parseOptions(process.argv.slice(2), fileURLToPath(new URL('../../results', import.meta.url)));
  const rows = await runBenchmarks(options, progress);
  await mkdir(options.out, { recursive: true });
  const report = markdown(rows, commit());
  await writeFile(join(options.out, 'report.json'), `${JSON.stringify(rows, null, 2)}\n`);
  await writeFile(join(options.out, 'report.md'), report);
  process.stdout.write(`\n${report}`);
  if (rows.some((row) => row.verdict === 'failed')) process.exitCode = 1;
} catch (error) {
  process.stderr.write(`bench: ${(error as Error).message}\n`);
  process.exitCode = 1;
}
