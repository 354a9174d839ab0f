import { execFileSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseOptions } from './options.ts';
import { markdown, type Row, toRow } from './report/report.ts';
import { memoryPerObject } from './scenarios/memory.ts';
import { requestScenarios } from './scenarios/requests.ts';
import type { Scenario } from './scenarios/scenario.ts';
import { serverStart, testPlaneStart } from './scenarios/start.ts';
import { watchFanOut } from './scenarios/watch-fan-out.ts';
import { openStage } from './stage.ts';

const scenarios: readonly Scenario[] = [...requestScenarios, watchFanOut, memoryPerObject, testPlaneStart, serverStart];

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

const options = parseOptions(process.argv.slice(2), fileURLToPath(new URL('../../results', import.meta.url)));
const wanted = scenarios.filter(
  ({ name }) => options.scenarios.length === 0 || options.scenarios.some((word) => name.startsWith(word)),
);
const rows: Row[] = [];
for (const [index, adapter] of options.adapters.entries()) {
  const { stage, close } = await openStage(adapter, options, (text) => progress(`${adapter}: ${text}`));
  try {
    for (const scenario of wanted.filter((candidate) => candidate.everyAdapter || index === 0)) {
      const named = { ...stage, progress: (text: string) => progress(`${adapter}: ${scenario.name}: ${text}`) };
      const row = toRow(scenario, adapter, await scenario.run(named));
      rows.push(row);
      progress(`${adapter}: ${scenario.name}: ratio ${row.ratio.toFixed(2)} (mark ${row.mark})`);
    }
  } finally {
    await close();
  }
}
await mkdir(options.out, { recursive: true });
const report = markdown(rows, commit());
await writeFile(join(options.out, 'report.json'), `${JSON.stringify(rows, null, 2)}\n`);
await writeFile(join(options.out, 'report.md'), report);
process.stdout.write(`\n${report}`);
