import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { missingServer } from '../stores/database.ts';
import { type ScalePart, scaleParts } from './scale-parts.ts';
import { type PartResult, scaleReport } from './scale-report.ts';
import { PartEnded, type ScaleOptions, ScaleStage } from './scale-stage.ts';

/**
 * Growth of one server with objects, watches, the length of a list, and the time of constant writes:
 * `scale [--parts objects,watches,list,writes] [--seconds 100]`. Each part ends with its last step, or when its time or
 * memory is used up. Parts that are not named keep their figures in the report.
 */
const known = scaleParts.map(({ name }) => name);

function parse(words: readonly string[]) {
  const { values } = parseArgs({
    args: [...words],
    options: {
      parts: { type: 'string', default: known.join(',') },
      storage: { type: 'string', default: 'memory' },
      objects: { type: 'string', default: '1000000' },
      watches: { type: 'string', default: '10000' },
      shared: { type: 'string' },
      list: { type: 'string', default: '100000' },
      rate: { type: 'string', default: '5000' },
      seconds: { type: 'string', default: '100' },
      slice: { type: 'string', default: '1000' },
      memory: { type: 'string', default: '4000' },
      out: { type: 'string', default: fileURLToPath(new URL('../../../results', import.meta.url)) },
    },
  });
  const parts = values.parts.split(',').map((word) => {
    const part = scaleParts.find(({ name }) => name === word);
    if (part === undefined) throw new Error(`--parts knows ${known.join(', ')}, not ${word}`);
    return part;
  });
  const number = (name: string, text: string, least = 1): number => {
    const value = Number(text);
    if (!Number.isInteger(value) || value < least)
      throw new Error(`--${name} must be a whole number from ${least}, not ${text}`);
    return value;
  };
  const { storage } = values;
  if (storage !== 'memory' && storage !== 'lmdb') throw new Error(`--storage knows memory and lmdb, not ${storage}`);
  const watches = number('watches', values.watches, 10);
  const shared = number('shared', values.shared ?? String(Math.floor(watches / 10)), 0);
  if (shared > watches) throw new Error(`--shared must be at most --watches, ${watches}, not ${shared}`);
  const options: ScaleOptions = {
    objects: number('objects', values.objects, 10),
    ...{ watches, shared },
    list: number('list', values.list, 10),
    rate: number('rate', values.rate),
    seconds: number('seconds', values.seconds),
    sliceMs: number('slice', values.slice),
    memory: number('memory', values.memory) * 1e6,
    storage,
  };
  return { parts, options, out: values.out };
}

function commit(): string {
  try {
    return execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim();
  } catch {
    return 'unknown';
  }
}

const load = (): number => loadavg()[0] ?? Number.NaN;

async function measure(part: ScalePart, options: ScaleOptions, words: readonly string[]): Promise<PartResult> {
  const storage = part.adapter === 'chosen' ? options.storage : part.adapter;
  const head = { name: part.name, storage, commit: commit(), words };
  const before = load();
  const missing = await missingServer(storage);
  if (missing !== undefined) return { ...head, load: [before, load()], points: [], ended: missing };
  const folder = await mkdtemp(join(tmpdir(), 'keelson-scale-'));
  let stage: ScaleStage | undefined;
  let ended: string | undefined;
  try {
    stage = await ScaleStage.open(options, storage, folder, (text) => process.stderr.write(`${part.name}: ${text}\n`));
    await part.run(stage);
  } catch (error) {
    if (stage === undefined || stage.points.length === 0) throw error;
    ended = (error as Error).message;
    if (!(error instanceof PartEnded)) process.exitCode = 1;
  } finally {
    await stage?.close();
    await rm(folder, { recursive: true, force: true });
  }
  const { points } = stage;
  return { ...head, load: [before, load()], points, ...(ended === undefined ? {} : { ended }) };
}

try {
  const words = process.argv.slice(2);
  const { parts, options, out } = parse(words);
  const file = join(out, 'scale.json');
  const shown = words.filter((word, index) => word !== '--out' && words[index - 1] !== '--out');
  let results: readonly PartResult[] = await readFile(file, 'utf8').then(
    (text) => JSON.parse(text) as PartResult[],
    () => [],
  );
  await mkdir(out, { recursive: true });
  for (const part of parts) {
    const result = await measure(part, options, shown);
    const all = [...results.filter(({ name }) => name !== part.name), result];
    results = all.sort((a, b) => known.indexOf(a.name) - known.indexOf(b.name));
    for (const [name, text] of Object.entries(scaleReport(results))) await writeFile(join(out, name), text);
  }
  process.stdout.write(await readFile(join(out, 'scale.md'), 'utf8'));
} catch (error) {
  process.stderr.write(`scale: ${(error as Error).message}\n`);
  process.exitCode = 2;
}
