import { readFileSync } from 'node:fs';
import test from 'ava';

const root = new URL('../../', import.meta.url);

/** Names that an entry point exports by name, types included, in the order of the alphabet. */
function namesOf(source: string): string[] {
  return [...source.matchAll(/^export (?:type )?\{([^}]*)\}/gm)]
    .flatMap(([, list = '']) => list.split(','))
    .map(
      (item) =>
        item
          .trim()
          .replace(/^type /, '')
          .split(' as ')
          .at(-1) ?? '',
    )
    .filter((name) => name !== '')
    .sort();
}

for (const entryPoint of ['index', 'storage-adapter', 'runtime', 'internal']) {
  test(`the entry point ${entryPoint} exports the names in test/entry-points/${entryPoint}.txt`, (t) => {
    const source = readFileSync(new URL(`src/${entryPoint}.ts`, root), 'utf8');
    const pinned = readFileSync(new URL(`test/entry-points/${entryPoint}.txt`, root), 'utf8');
    t.deepEqual(namesOf(source), pinned.trim().split('\n'));
  });
}

test('every export of a public entry point is marked as public or experimental', (t) => {
  for (const entryPoint of ['index', 'storage-adapter', 'runtime']) {
    const source = readFileSync(new URL(`src/${entryPoint}.ts`, root), 'utf8');
    const unmarked = [...source.matchAll(/(?<!@(?:public|experimental) \*\/\n)^export (?!\*)[^\n]*/gm)].map(
      ([line]) => line,
    );
    t.deepEqual(unmarked, [], entryPoint);
  }
});

/** Names of a public entry point whose declaration has no comment, with their files. */
function undocumented(entryPoint: string): string[] {
  const source = readFileSync(new URL(`src/${entryPoint}.ts`, root), 'utf8');
  return [...source.matchAll(/^export (?:type )?\{([^}]*)\} from '\.\/([^']+)'/gm)].flatMap(
    ([, list = '', file = '']) => {
      const text = readFileSync(new URL(`src/${file}`, root), 'utf8');
      const names = list.split(',').map(
        (item) =>
          item
            .trim()
            .replace(/^type /, '')
            .split(' as ')[0] ?? '',
      );
      return names
        .filter((name) => name !== '')
        .filter(
          (name) =>
            !new RegExp(
              `\\*/\\n(?:// biome-ignore[^\\n]*\\n)?(?:export )?${declaration} ${name.replace('$', '\\$')}\\b`,
            ).test(text),
        )
        .map((name) => `${file}: ${name}`);
    },
  );
}

const declaration = '(?:declare )?(?:abstract )?(?:async )?(?:class|const|function\\*?|interface|type)';

test('every declaration that a public entry point exports has a comment', (t) => {
  for (const entryPoint of ['index', 'storage-adapter', 'runtime'])
    t.deepEqual(undocumented(entryPoint), [], entryPoint);
});
