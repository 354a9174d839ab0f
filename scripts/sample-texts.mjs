// Prints a random sample of comments, log messages and error texts, to be read without the code beside it:
// `node scripts/sample-texts.mjs [--seed N] [--comments 100] [--logs 50] [--errors 50]`. The same seed gives the same
// sample.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = fileURLToPath(new URL('..', import.meta.url));
const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    comments: { type: 'string', default: '100' },
    logs: { type: 'string', default: '50' },
    errors: { type: 'string', default: '50' },
  },
});

/** Numbers in [0, 1) that depend on the seed alone (mulberry32). */
function generator(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const literal = /(?:'((?:[^'\\\n]|\\.)*)'|`((?:[^`\\]|\\.)*)`)/;
const patterns = {
  comments: /^[ \t]*\/\*\*?([\s\S]*?)\*\/|((?:^[ \t]*\/\/.*\n)+)/gm,
  logs: new RegExp(`\\.(?:info|warn|error|debug)\\(\\s*${literal.source}`, 'g'),
  errors: new RegExp(
    `\\bnew \\w*Error\\((?:[^'\`()]{0,120})${literal.source}|statusErrors\\.\\w+\\([^'\`]{0,120}${literal.source}`,
    'g',
  ),
};

const files = execFileSync('git', ['ls-files', 'packages/*/src/**.ts', 'adapters/*/src/**.ts', 'scripts/*.mjs'], {
  cwd: root,
  encoding: 'utf8',
})
  .split('\n')
  .filter((file) => file !== '');

const found = { comments: [], logs: [], errors: [] };
for (const file of files) {
  const text = readFileSync(join(root, file), 'utf8');
  for (const [kind, pattern] of Object.entries(patterns)) {
    for (const match of text.matchAll(pattern)) {
      const content = match
        .slice(1)
        .find((group) => group !== undefined)
        ?.replace(/^[ \t]*(?:\*|\/\/) ?/gm, '')
        .replace(/\s+/g, ' ')
        .trim();
      if (content !== undefined && /[a-z]{2,} [a-z]/i.test(content) && !/biome-ignore|oxlint/.test(content)) {
        found[kind].push(`${content}  [${file}:${text.slice(0, match.index).split('\n').length}]`);
      }
    }
  }
}

process.stdout.write(`seed ${values.seed}\n`);
const random = generator(Number(values.seed));
for (const [kind, texts] of Object.entries(found)) {
  const count = Math.min(Number(values[kind]), texts.length);
  process.stdout.write(`\n== ${count} of ${texts.length} ${kind}\n`);
  for (let n = 1; n <= count; n++) {
    const [text] = texts.splice(Math.floor(random() * texts.length), 1);
    process.stdout.write(`${n}. ${text}\n`);
  }
}
