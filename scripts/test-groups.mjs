// Puts the test files of a folder into one process where that makes no difference to them (ADR 50), because a process
// costs more than most of them. Each group is an entry that imports them, in `dist/groups` of their package;
// scripts/test-group.mjs runs one file after the other.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Workspaces with several small test files. Folders with several files are groups; the other files are one group. */
const workspaces = [
  'packages/access',
  'packages/agent',
  'packages/client',
  'packages/conformance',
  'packages/container-images',
  'packages/container-monitor',
  'packages/container-network',
  'packages/container-runtime',
  'packages/controller-kit',
  'packages/controllers',
  'packages/core',
  'packages/extensions',
  'packages/keelson',
  'packages/keelson-agent',
  'packages/kinds',
  'packages/scheduler',
  'packages/service-proxy',
  'adapters/http-koa',
  'adapters/runtime-cri',
  'adapters/runtime-fake',
  'adapters/runtime-oci',
  'adapters/storage-etcd3',
  'adapters/storage-memory',
  'adapters/storage-postgres',
  'test',
];

/** Workspaces of which only these folders are grouped; their other folders have no small files. */
const onlyFolders = { test: ['agent', 'client', 'durability', 'kubectl', 'plane'] };

/**
 * What a file contains that needs a process of its own: `await` outside of a function (the runner wants all tests to be
 * declared at once), state of the process, measurements, a comment that asks for it.
 */
const needsOwnProcess = [
  /^(?!.*\basync\b)\S.*\bawait\b/m,
  /process\.(?:chdir|umask|on|once|off|emit|exitCode|env(?:\.\w+|\[[^\]]*\]) =)|globalThis/,
  /performance\.now|process\.(?:hrtime|cpuUsage|memoryUsage|resourceUsage)|node:v8/,
  /^\/\/ Process of its own: /m,
];

const hasOwnProcess = (file) => {
  const text = readFileSync(file, 'utf8');
  return needsOwnProcess.some((pattern) => pattern.test(text));
};

const folderOf = (name) => name.slice(0, Math.max(0, name.indexOf('/')));

/**
 * Maximum number of files of a group. The files of a group run one after the other, so that a large group would still
 * run when all other processes have ended.
 */
const maxFiles = 12;

/** Divides a large group into parts of about equal size. */
function partsOf(group, members) {
  const count = Math.ceil(members.length / maxFiles);
  return Array.from({ length: count }, (_, part) => [
    count === 1 ? group : `${group}-${part + 1}`,
    members.filter((_, i) => i % count === part),
  ]);
}

/**
 * Writes the entries of the groups of these workspaces, and returns the files that they run, relative to `root`.
 *
 * @param alone files that are in no group: they are long, or run at night alone
 */
export function writeGroups(root, isIncluded, alone) {
  const tested = workspaces.filter(
    (workspace) => isIncluded(workspace) && existsSync(join(root, workspace, 'dist/test')),
  );
  return tested.flatMap((workspace) => {
    const tests = join(root, workspace, 'dist/test');
    const names = readdirSync(tests, { recursive: true })
      .filter((name) => name.endsWith('.test.js') && !alone.includes(`${workspace}/dist/test/${name}`))
      .filter((name) => !hasOwnProcess(join(tests, name)))
      .filter((name) => onlyFolders[workspace]?.includes(folderOf(name)) ?? true)
      .sort();
    const groups = new Map();
    for (const name of names) {
      const isOnly = !names.some((other) => other !== name && folderOf(other) === folderOf(name));
      const group = (isOnly ? '' : folderOf(name)) || 'others';
      groups.set(group, [...(groups.get(group) ?? []), name]);
    }
    const entries = join(root, workspace, 'dist/groups');
    rmSync(entries, { recursive: true, force: true });
    mkdirSync(entries);
    return [...groups]
      .flatMap(([group, members]) => partsOf(group, members))
      .filter(([, members]) => members.length > 1)
      .flatMap(([group, members]) => {
        // An import is evaluated after the one before it, so the first of each pair names the file of the second.
        const imports = members.map(
          (name) => `import 'data:text/javascript,globalThis.keelsonTestFile="${name}"';\nimport '../test/${name}';\n`,
        );
        writeFileSync(join(entries, `${group}.test.js`), imports.join(''));
        return members.map((name) => `${workspace}/dist/test/${name}`);
      });
  });
}
