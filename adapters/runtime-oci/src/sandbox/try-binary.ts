import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { removeEmptyCgroup } from '@keelson/container-host';
import { newId } from '@keelson/container-monitor';
import { RuntimeError } from '@keelson/container-runtime';
import { lastMessageIn, type OciBinary } from '../binary/oci-binary.ts';
import { defaultProfile } from '../bundle/seccomp.ts';
import type { Programs } from '../launch/programs.ts';
import { runToEnd, writeHolderBundle } from './pid-holder.ts';

/**
 * Runs a container that ends immediately, because the version of a binary does not show what works on this machine.
 *
 * @throws RuntimeError `Unsupported` with the message of the binary when it cannot run containers on this machine
 */
export async function tryBinary(
  binary: OciBinary,
  programs: Programs,
  scratch: string,
  cgroups: { readonly mountpoint: string; readonly parent: string },
): Promise<{ readonly seccomp: boolean }> {
  const filtered = await runs(defaultProfile([]));
  if (filtered === undefined) return { seccomp: true };
  const problem = await runs(undefined);
  if (problem !== undefined)
    throw new RuntimeError('Unsupported', `${binary.version.name} cannot run containers on this machine: ${problem}`);
  return { seccomp: false };

  async function runs(seccomp: object | undefined): Promise<string | undefined> {
    const id = `probe-${newId()}`;
    const folder = join(scratch, id);
    const log = join(folder, 'oci.log');
    const cgroupsPath = join('/', cgroups.parent, id);
    try {
      await mkdir(folder);
      await writeHolderBundle(folder, programs, {
        args: ['end'],
        cgroupsPath,
        ...(seccomp && { seccomp }),
      });
      await runToEnd(binary.commandLine(log, 'run', '--bundle', folder, id));
      return undefined;
    } catch (error) {
      return (await lastMessageIn(log)) ?? String(error);
    } finally {
      await binary.delete(id);
      // A binary that fails during the start may leave the cgroup behind.
      await removeEmptyCgroup(cgroups.mountpoint, cgroupsPath);
      await rm(folder, { recursive: true, force: true });
    }
  }
}
