import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, relative } from 'node:path';
import { type CgroupFiles, systemCgroupFiles } from '@keelson/container-host';
import type { ExecutionContext } from 'ava';

type Contents = Readonly<Record<string, string>>;

const ofVersion1: Readonly<Record<string, Contents>> = {
  cpu: { 'cpu.shares': '1024', 'cpu.cfs_period_us': '100000', 'cpu.cfs_quota_us': '-1' },
  cpuset: { 'cpuset.cpus': '', 'cpuset.mems': '' },
  memory: { 'memory.limit_in_bytes': '9223372036854771712', 'memory.usage_in_bytes': '0' },
  pids: { 'pids.max': 'max' },
  freezer: { 'freezer.state': 'THAWED' },
};

const ofVersion2: Readonly<Record<string, Contents>> = {
  cpu: { 'cpu.weight': '100', 'cpu.max': 'max 100000' },
  cpuset: { 'cpuset.cpus': '' },
  memory: { 'memory.max': 'max', 'memory.current': '0' },
  pids: { 'pids.max': 'max' },
};

function failure(code: string): Error {
  return Object.assign(new Error(`${code}: ordered by the test`), { code });
}

/** A directory that stands for the cgroups of a machine: plain files, and what a kernel does when they are written. */
export class CgroupMachine {
  readonly root: string;
  readonly version: 1 | 2;
  /** `cpu/kubepods/cpu.shares = 1024`, in the order of writing. */
  readonly writes: string[] = [];
  readonly killed: number[] = [];
  /** Processes that no signal ends. */
  readonly immortal = new Set<number>();
  /** Groups that may not be made. */
  readOnly = false;
  readonly files: CgroupFiles;

  constructor(t: ExecutionContext, version: 1 | 2) {
    this.root = mkdtempSync(join(tmpdir(), 'keelson-cgroups-'));
    this.version = version;
    t.teardown(() => rmSync(this.root, { recursive: true, force: true }));
    const start = { 'cgroup.procs': '' };
    if (version === 2)
      this.#put(this.root, {
        ...start,
        'cgroup.controllers': 'cpuset cpu io memory pids',
        'cgroup.subtree_control': '',
      });
    else {
      for (const name of Object.keys(ofVersion1)) {
        mkdirSync(join(this.root, name));
        this.#put(join(this.root, name), { ...start, ...ofVersion1[name] });
      }
      this.#put(join(this.root, 'cpuset'), { 'cpuset.cpus': '0-3\n', 'cpuset.mems': '0\n' });
    }
    this.files = {
      ...systemCgroupFiles,
      write: (path, text) => this.#write(path, text),
      make: (path) => this.#make(path),
      remove: (path) => this.#remove(path),
      kill: (pid) => this.#kill(pid),
    };
  }

  /** Text of a file; `cpu/kubepods/cpu.shares` in version 1, `kubepods/cpu.weight` in version 2. */
  read(path: string): string {
    return readFileSync(join(this.root, path), 'utf8').trim();
  }

  set(path: string, text: string): void {
    writeFileSync(join(this.root, path), text);
  }

  /** Groups of a hierarchy of version 1, or of version 2. */
  groups(hierarchy = this.version === 1 ? 'cpu' : ''): string[] {
    const root = join(this.root, hierarchy);
    const entries = readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) => entry.isDirectory());
    return entries.map((entry) => `/${relative(root, join(entry.parentPath, entry.name))}`).sort();
  }

  /** Creates a cgroup as another process would. */
  async makeGroup(path: string): Promise<void> {
    for (const hierarchy of this.#hierarchies()) {
      let folder = hierarchy;
      for (const name of path.split('/').filter(Boolean)) {
        folder = join(folder, name);
        await this.#make(folder);
      }
    }
  }

  /** Puts processes into a group, without asking. */
  enter(path: string, ...pids: number[]): void {
    for (const hierarchy of this.#hierarchies()) {
      const file = join(hierarchy, path, 'cgroup.procs');
      for (const pid of existsSync(file) ? pids : []) {
        this.#leave(hierarchy, pid);
        writeFileSync(file, `${readFileSync(file, 'utf8')}${pid}\n`);
      }
    }
  }

  #hierarchies(): string[] {
    return this.version === 2 ? [this.root] : Object.keys(ofVersion1).map((name) => join(this.root, name));
  }

  #put(folder: string, contents: Contents): void {
    for (const [name, text] of Object.entries(contents)) writeFileSync(join(folder, name), text);
  }

  #leave(hierarchy: string, pid: number): void {
    for (const entry of readdirSync(hierarchy, { recursive: true, withFileTypes: true })) {
      if (entry.name !== 'cgroup.procs') continue;
      const file = join(entry.parentPath, entry.name);
      const text = readFileSync(file, 'utf8');
      if (text !== '')
        writeFileSync(
          file,
          text
            .split('\n')
            .filter((line) => line !== '' && line !== String(pid))
            .map((line) => `${line}\n`)
            .join(''),
        );
    }
  }

  async #make(path: string): Promise<void> {
    if (this.readOnly) throw failure('EROFS');
    if (await systemCgroupFiles.isFolder(path)) return;
    await systemCgroupFiles.make(path);
    this.#put(path, { 'cgroup.procs': '' });
    if (this.version === 1) {
      this.#put(path, ofVersion1[relative(this.root, path).split('/')[0] ?? ''] ?? {});
      return;
    }
    const handed = readFileSync(join(dirname(path), 'cgroup.subtree_control'), 'utf8')
      .split(' ')
      .filter(Boolean);
    this.#put(path, { 'cgroup.controllers': handed.join(' '), 'cgroup.subtree_control': '' });
    for (const name of handed) this.#put(path, ofVersion2[name] ?? {});
  }

  async #write(path: string, text: string): Promise<boolean> {
    const folder = dirname(path);
    const before = await systemCgroupFiles.read(path);
    if (before === undefined) return false;
    this.writes.push(`${relative(this.root, path)} = ${text}`);
    switch (basename(path)) {
      case 'cgroup.procs': {
        const cpus = await systemCgroupFiles.read(join(folder, 'cpuset.cpus'));
        if (this.version === 1 && cpus?.trim() === '') throw failure('ENOSPC');
        const hierarchy = this.#hierarchies().find((root) => path.startsWith(`${root}/`)) ?? '';
        this.#leave(hierarchy, Number(text));
        writeFileSync(path, `${readFileSync(path, 'utf8')}${text}\n`);
        return true;
      }
      case 'cgroup.subtree_control':
        writeFileSync(path, `${before} ${text.slice(1)}`.trim());
        return true;
      case 'memory.limit_in_bytes': {
        const used = Number(readFileSync(join(folder, 'memory.usage_in_bytes'), 'utf8'));
        if (Number(text) >= 0 && Number(text) < used) throw failure('EBUSY');
      }
    }
    writeFileSync(path, text);
    return true;
  }

  async #remove(path: string): Promise<void> {
    if (!(await systemCgroupFiles.isFolder(path))) return;
    const below = await systemCgroupFiles.folders(path);
    if (below.length > 0 || readFileSync(join(path, 'cgroup.procs'), 'utf8') !== '') throw failure('EBUSY');
    rmSync(path, { recursive: true });
  }

  #kill(pid: number): void {
    this.killed.push(pid);
    if (!this.immortal.has(pid)) for (const hierarchy of this.#hierarchies()) this.#leave(hierarchy, pid);
  }
}
