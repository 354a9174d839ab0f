/**
 * Provides a sub path again and again while another process exchanges its first directory for a link that leads out
 * of the volume, and back. Runs in a mount namespace of its own. Arguments: an empty folder, how many descriptors to
 * check, how many mounts to make. Writes one line of JSON: {@link RaceOutcome}.
 */
import { fork } from 'node:child_process';
import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AgentPaths } from '../../src/base/agent-paths.ts';
import { runProgram } from '../../src/base/run-program.ts';
import { localAccess } from '../../src/machine/host/host-access.ts';
import { systemMounter } from '../../src/machine/volumes/mounter.ts';
import { SubPaths } from '../../src/machine/volumes/sub-path.ts';
import { VolumeProblem } from '../../src/machine/volumes/volume-problem.ts';

/** How the attempts ended. `escaped` counts those that showed a file from outside of the volume. */
export interface RaceOutcome {
  readonly inside: number;
  readonly refused: number;
  readonly escaped: number;
}

const [, , folder = '', pinned = '0', mounted = '0', exchanging] = process.argv;
const volume = join(folder, 'volume');
const name = join(volume, 'a');

if (exchanging === undefined) process.stdout.write(`${JSON.stringify(await race())}\n`);
else exchange();

/** Until the other process ends. */
function exchange(): void {
  const [away, link] = [join(volume, 'away'), join(volume, 'link')];
  process.on('disconnect', () => process.exit());
  const round = () => {
    for (let count = 0; count < 50; count += 1) {
      renameSync(name, away);
      replace(link);
      renameSync(name, link);
      replace(away);
    }
    setImmediate(round);
  };
  round();
}

/** The agent may have made the directory that is missing for a moment. */
function replace(from: string): void {
  for (;;) {
    try {
      renameSync(from, name);
      return;
    } catch {
      try {
        rmSync(name, { recursive: true, force: true });
      } catch {
        // The agent made another one in it.
      }
    }
  }
}

async function race(): Promise<RaceOutcome> {
  for (const at of [join(volume, 'a/sub'), join(folder, 'outside/sub')]) mkdirSync(at, { recursive: true });
  writeFileSync(join(volume, 'a/sub/where'), 'inside');
  writeFileSync(join(folder, 'outside/sub/where'), 'outside');
  symlinkSync(join(folder, 'outside'), join(volume, 'link'));
  const paths = new AgentPaths(join(folder, 'agent'), join(folder, 'log'));
  const outcome = { inside: 0, refused: 0, escaped: 0 };
  const record = (at: string) => {
    let text = '';
    try {
      text = readFileSync(join(at, 'where'), 'utf8');
    } catch {
      // A directory that the agent created while there was none.
    }
    outcome[text === 'outside' ? 'escaped' : 'inside'] += 1;
  };
  // What mount(8) would mount is seen through the descriptor that it is given.
  const seen = localAccess(async (_program, words) => {
    record(words.at(-2) ?? '');
    return Buffer.alloc(0);
  });
  const real = localAccess(runProgram);
  const attempts = async (count: number, host: typeof real, afterwards: (target: string) => void) => {
    const subPaths = new SubPaths({ paths, host, mounter: systemMounter(undefined, host) });
    for (let at = 0; at < count; at += 1) {
      try {
        const { hostPath } = await subPaths.provide(volume, 'a/sub', {
          uid: 'u',
          volume: 'v',
          container: 'c',
          index: 0,
        });
        afterwards(hostPath);
      } catch (error) {
        if (!(error instanceof VolumeProblem)) throw error;
        outcome.refused += 1;
      }
    }
  };
  const other = fork(process.argv[1] ?? '', [folder, '0', '0', 'exchange']);
  try {
    await attempts(Number(pinned), seen, () => {});
    await attempts(Number(mounted), real, record);
  } finally {
    other.kill('SIGKILL');
  }
  await systemMounter(undefined, real).unmountBelow(folder);
  return outcome;
}
