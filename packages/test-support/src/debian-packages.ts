import { execFileSync } from 'node:child_process';
import { closeSync, existsSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Directories in which Debian installs programs; the PATH of a test may lack some of them. */
const folders = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];

/** Path of a program of this machine; undefined when there is none. */
export function findProgram(name: string): string | undefined {
  const all = [...(process.env['PATH'] ?? '').split(delimiter), ...folders];
  return all
    .filter((folder) => folder !== '')
    .map((folder) => join(folder, name))
    .find((path) => existsSync(path));
}

/**
 * Ensures that these programs exist, and installs Debian's packages for them where this process may (as root, with
 * apt). Services of the packages are not started. Test files that install at the same time wait for each other.
 *
 * @returns what is still missing, by name; empty when all is there
 * @throws Error in continuous integration when something is missing: there a skipped test is a failure
 */
export function installPrograms(programs: readonly string[], packages: readonly string[]): readonly string[] {
  const missing = () => programs.filter((name) => findProgram(name) === undefined);
  if (missing().length > 0 && process.getuid?.() === 0 && findProgram('apt-get') !== undefined) {
    // `flock` waits for a running installation and then checks again, since it may have installed the same programs.
    const lock = '/tmp/keelson-install.lock';
    closeSync(openSync(lock, 'a'));
    const test = programs.map((name) => `command -v ${name} >/dev/null`).join(' && ');
    const script = `${test} && exit 0; ${installScript(packages)}`;
    const env = {
      ...process.env,
      PATH: [process.env['PATH'], ...folders].join(delimiter),
      DEBIAN_FRONTEND: 'noninteractive',
      RUNLEVEL: '1',
    };
    withoutServices(() => {
      try {
        execFileSync('flock', [lock, 'sh', '-c', script], { env, stdio: 'ignore', timeout: 240_000 });
      } catch {
        // A failed installation is not reported here: the result names the programs that are still missing.
      }
    });
  }
  const left = missing();
  if (left.length > 0 && process.env['CI']) throw new Error(`no ${left.join(', ')}: install ${packages.join(' ')}`);
  return left;
}

/** The lists of packages are updated again when they exist and are older than the content of the mirror. */
function installScript(packages: readonly string[]): string {
  const install = `apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=120 ${packages.join(' ')}`;
  return `${install} || { apt-get update -qq && ${install}; }`;
}

/** Debian starts the services of a package during its installation unless this policy denies it. */
function withoutServices(run: () => void): void {
  const policy = '/usr/sbin/policy-rc.d';
  const ours = !existsSync(policy);
  if (ours) writeFileSync(policy, '#!/bin/sh\nexit 101\n', { mode: 0o755 });
  try {
    run();
  } finally {
    if (ours) rmSync(policy, { force: true });
  }
}
