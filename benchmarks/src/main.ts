import { execFileSync } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type BenchOptions, parseOptions } from './options.ts';
import { type PeerRecord, peersAgain, peersReport } from './peers/peers-report.ts';
import { runPeers } from './peers/run-peers.ts';
import { readFigures, renewed } from './report/renewed.ts';
import { type Figures, type ReportFiles, wholeReport } from './report/whole-report.ts';
import { runBenchmarks } from './run-benchmarks.ts';
import { missingServer } from './stores/database.ts';
import { runStores } from './stores/run-stores.ts';

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

/** Where the report goes says nothing about the figures. */
const withoutFolder = (word: string, index: number, words: readonly string[]): boolean =>
  word !== '--out' && words[index - 1] !== '--out';

const load = (): number => loadavg()[0] ?? Number.NaN;

/** The report beside kube-apiserver. Returns whether every scenario gave a figure. */
async function comparePeers(options: BenchOptions, words: readonly string[]): Promise<boolean> {
  const before = load();
  const figures = await runPeers(options, progress);
  const { objects, watchers, rounds, sliceMs } = options;
  const now: PeerRecord = {
    ...figures,
    runs: [{ commit: commit(), words, load: [before, load()] }],
    options: { objects, watchers, rounds, sliceMs },
  };
  const file = join(options.out, 'peers.json');
  const record = options.again ? peersAgain(JSON.parse(await readFile(file, 'utf8')) as PeerRecord, now) : now;
  await write(options.out, peersReport(record), 'peers.md');
  return figures.rows.every(({ failed }) => failed === undefined);
}

/** The report beside floors. Returns whether every scenario gave a figure. */
async function compareFloors(options: BenchOptions, words: readonly string[]): Promise<boolean> {
  const before = load();
  const rows = await runBenchmarks(options, progress);
  const stores = await runStores(options, progress);
  const missing: Record<string, string> = {};
  for (const adapter of options.adapters) {
    const reason = await missingServer(adapter);
    if (reason !== undefined) missing[adapter] = reason;
  }
  const now: Figures = {
    rows,
    stores,
    circumstances: { runs: [{ commit: commit(), words, load: [before, load()] }], missing },
  };
  const figures = options.again ? renewed(await readFigures(join(options.out, 'report.json')), now) : now;
  await write(options.out, wholeReport(figures), 'report.md');
  return [...rows, ...stores].every(({ verdict }) => verdict !== 'failed');
}

async function write(folder: string, files: ReportFiles, shown: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  process.stdout.write(`\n${files[shown] ?? ''}`);
}

try {
  const words = process.argv.slice(2);
  const options = parseOptions(words, fileURLToPath(new URL('../../results', import.meta.url)));
  const complete = await (options.peers ? comparePeers : compareFloors)(options, words.filter(withoutFolder));
  if (!complete) process.exitCode = 1;
} catch (error) {
  process.stderr.write(`bench: ${(error as Error).message}\n`);
  process.exitCode = 1;
}
