import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test from 'ava';

const root = fileURLToPath(new URL('../../../../', import.meta.url));
const page = join(root, 'docs/reference/agent-scenarios.md');

/** Texts of a file and of its relative imports: words in quotes, and templates by their fixed parts. */
interface Texts {
  readonly words: Set<string>;
  readonly templates: Set<string>;
}

const escapes = /\\(.)/g;
const quoted = /'((?:[^'\\\n]|\\.)*)'|"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`/g;
const comment = /^\s*(\/\/|\/?\*)/;

async function textsOf(path: string, found: Texts = { words: new Set(), templates: new Set() }): Promise<Texts> {
  const source = await readFile(path, 'utf8');
  const code = source
    .split('\n')
    .filter((line) => !comment.test(line))
    .join('\n');
  collect(code, found);
  for (const [, specifier = ''] of code.matchAll(/from '(\.[^']+\.ts)'/g)) {
    // Only files with titles and cases: those are beside the tests, not in tested packages.
    const imported = join(dirname(path), specifier);
    if (/\/test\//.test(imported) && imported !== path) await textsOf(imported, found);
  }
  return found;
}

function collect(code: string, found: Texts): void {
  for (const [, single, double, template] of code.matchAll(quoted)) {
    const word = single ?? double;
    if (word !== undefined) found.words.add(word.replace(escapes, '$1'));
    if (template === undefined) continue;
    found.templates.add(template);
    // Words within the expressions.
    for (const [, filled = ''] of template.matchAll(/\$\{([^}]*)\}/g)) collect(filled, found);
  }
}

const literally = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

/**
 * Whether a test of this title can be created from the texts: a word, or a template that is filled with words,
 * numbers and booleans.
 */
function canBe(title: string, { words, templates }: Texts): boolean {
  if (words.has(title)) return true;
  // Only texts within the title can have been filled in.
  const parts = [...words].filter((word) => word !== '' && title.includes(word)).map(literally);
  const filling = `(?:${[...parts, '\\d+', 'true', 'false'].join('|')})`;
  return [...templates].some((template) => {
    const fixed = template.split(/\$\{[^}]*\}/).map((part) => literally(part.replace(escapes, '$1')));
    return fixed.some((part) => part.trim() !== '') && new RegExp(`^${fixed.join(filling)}$`).test(title);
  });
}

test('every test that the page of scenarios names exists, and every list is complete', async (t) => {
  const text = await readFile(page, 'utf8');
  const known = new Map<string, Promise<Texts>>();
  const missing: string[] = [];
  let named = 0;
  for (const section of text.split('\n## ').slice(1)) {
    const [, list = '', count] = /^(.*?)(?:: (\d+))?\n/.exec(section) ?? [];
    const rows = [...section.matchAll(/^\| (?!scenario)(.+?) \| (?:`(.+?)` \| `(.+?)`|\*later\* \|) \|$/gm)];
    if (count !== undefined) t.true(rows.length >= Number(count), `${list} has ${rows.length} rows`);
    for (const [, scenario = '', file, title] of rows) {
      if (file === undefined || title === undefined) {
        if (count !== undefined)
          t.true(text.split('## Later')[1]?.includes(scenario), `${scenario} is missing in the last section`);
        continue;
      }
      named += 1;
      const texts = known.get(file) ?? textsOf(join(root, file));
      known.set(file, texts);
      if (!canBe(title, await texts)) missing.push(`${file}: ${title}`);
    }
  }
  t.true(named > 190, `${named}`);
  t.deepEqual(missing, []);
});

test('a title without a test is detected', async (t) => {
  const texts = await textsOf(join(root, 'test/test/agent/e2e-volumes.test.ts'));
  t.true(canBe('config map in a projected volume: one file for each key', texts));
  t.false(canBe('config map in a projected volume: one file for each word', texts));
  t.false(canBe('config map in a drawer: one file for each key', texts));
});
