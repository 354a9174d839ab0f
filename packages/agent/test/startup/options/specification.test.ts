import { readFileSync } from 'node:fs';
import { defaultText } from '@keelson/core/internal';
import test from 'ava';
import { featureGates } from '../../../src/startup/options/feature-gates.ts';
import { optionTable } from '../../../src/startup/options/option-table.ts';

/** Name, type and default of every option, as the user's specification has them. */
const specified = readFileSync(
  new URL('../../../../test/startup/options/specified-options.txt', import.meta.url),
  'utf8',
)
  .trim()
  .split('\n')
  .map((line) => line.split('\t'));

test('the table contains exactly the options of the specification', (t) => {
  t.deepEqual(optionTable.map(({ name }) => name).sort(), specified.map(([name = '']) => name).sort());
  t.is(new Set(optionTable.map(({ name }) => name)).size, optionTable.length);
});

test('types are those of the specification', (t) => {
  for (const [name, type] of specified) t.is(optionTable.find((row) => row.name === name)?.type.name, type, name);
});

/** Where the specification describes a default in prose or leaves a name open. */
const described: Readonly<Record<string, RegExp>> = {
  'a unix socket URL': /^unix:\/\/\/./,
  'a pause image reference': /pause/,
  'see below': /gates/,
  none: /^(none|)$/,
  empty: /^empty$/,
  'same as runtime endpoint': /--container-runtime-endpoint/,
  'first in PATH': /first in PATH/,
  'runtime default': /runtime/,
  'default mount': /default mount/,
};

test('defaults are those of the specification', (t) => {
  for (const [name, , specifiedDefault = ''] of specified) {
    const row = optionTable.find((candidate) => candidate.name === name)!;
    const text = defaultText(row).replace(/,(?=\S)/g, ', ');
    const pattern = described[specifiedDefault];
    if (pattern !== undefined) t.regex(text, pattern, name);
    else
      t.true(
        text ===
          specifiedDefault
            .replaceAll('<agent>', 'keelson-agent')
            .replaceAll('<vendor>', 'kubernetes')
            .replaceAll('{vendor}', 'kubernetes') || text.startsWith(`${specifiedDefault};`),
        `${name}: ${text} is not ${specifiedDefault}`,
      );
  }
});

test('gates, stages and defaults are those of the specification', (t) => {
  const listed = readFileSync(new URL('../../../../test/startup/options/specified-gates.txt', import.meta.url), 'utf8');
  const rows = listed
    .trim()
    .split('\n')
    .map((line) => line.split('\t'));
  t.deepEqual(
    featureGates.map(({ name, stage, default: value }) => [
      name,
      stage === '' ? 'no stage' : stage.toLowerCase(),
      String(value),
    ]),
    rows,
  );
});
