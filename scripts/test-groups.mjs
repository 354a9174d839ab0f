// Puts test files into one process where that makes no difference to them (ADR 50), because a process costs more than
// most of them. Each group is an entry that names them; scripts/test-group.mjs runs one file after the other.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * What a file contains that needs a process of its own: state of the process, processor time or memory of the process,
 * a comment that asks for it.
 */
const needsOwnProcess = [
  /process\.(?:chdir|umask|on|once|off|emit|exitCode|env(?:\.\w+|\[[^\]]*\]) =(?!=))|globalThis/,
  /process\.(?:cpuUsage|memoryUsage|resourceUsage)|node:v8/,
  /^\/\/ Process of its own: /m,
];

const hasOwnProcess = (file) => {
  const text = readFileSync(file, 'utf8');
  return needsOwnProcess.some((pattern) => pattern.test(text));
};

/** The workspaces with compiled tests, relative to `root`. */
function workspacesOf(root) {
  const folders = ['packages', 'adapters', 'examples'].flatMap((folder) => {
    if (!existsSync(join(root, folder))) return [];
    return readdirSync(join(root, folder)).map((name) => `${folder}/${name}`);
  });
  return [...folders, 'benchmarks', 'test'].filter((workspace) => existsSync(join(root, workspace, 'dist/test')));
}

/** The files of a workspace that can share a process. */
function filesOf(root, workspace, alone) {
  const folder = `${workspace}/dist/test`;
  return readdirSync(join(root, folder), { recursive: true })
    .filter((name) => name.endsWith('.test.js'))
    .map((name) => `${folder}/${name}`)
    .filter((file) => !alone.includes(file) && !hasOwnProcess(join(root, file)))
    .sort();
}

/**
 * Maximum number of files of a group. The files of a group run one after the other, so that a large group would still
 * run when all other processes have ended. Those of the workspace `test` start servers and take longer.
 */
const maxFiles = (workspace) => (workspace === 'test' ? 12 : 24);

/** Divides files into groups of about equal size. */
function divided(name, files) {
  const count = Math.ceil(files.length / maxFiles(name));
  const size = Math.ceil(files.length / count);
  return Array.from({ length: count }, (_, part) => ({
    name: count === 1 ? name : `${name}-${part + 1}`,
    files: files.slice(part * size, (part + 1) * size),
  }));
}

/**
 * Writes the entries of the groups into a folder of `root`, and returns the files that they run, relative to `root`.
 *
 * @param folder relative to `root`
 * @param isIncluded which workspaces
 * @param alone files that are in no group: they are long, or run at night alone
 */
export function writeGroups(root, folder, isIncluded, alone) {
  rmSync(join(root, folder), { recursive: true, force: true });
  mkdirSync(join(root, folder), { recursive: true });
  const workspaces = workspacesOf(root)
    .filter(isIncluded)
    .map((workspace) => ({ name: workspace.replace('/', '-'), files: filesOf(root, workspace, alone) }));
  const singleFiles = workspaces.filter(({ files }) => files.length === 1).flatMap(({ files }) => files);
  const groups = [...workspaces, { name: 'workspaces', files: singleFiles }]
    .filter(({ files }) => files.length > 1)
    .flatMap(({ name, files }) => divided(name, files));
  for (const { name, files } of groups) {
    const paths = files.map((file) => [file.replace('/dist/test', '').replace(/\.test\.js$/, ''), join(root, file)]);
    const entry = [
      `import { importGroup } from ${JSON.stringify(new URL('test-group.mjs', import.meta.url).href)};`,
      `await importGroup(${JSON.stringify(Object.fromEntries(paths), undefined, 2)});\n`,
    ];
    writeFileSync(join(root, folder, `${name}.test.js`), entry.join('\n'));
  }
  return groups.flatMap(({ files }) => files);
}
