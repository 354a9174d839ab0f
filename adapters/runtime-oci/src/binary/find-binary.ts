import { execFile } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { findTool, toolPath } from '@keelson/container-host';
import { RuntimeError } from '@keelson/container-runtime';
import { hybridControllers } from '../bundle/machine.ts';
import { type BinaryVersion, binaryEnvironment } from './oci-binary.ts';

const defaultBinaries = ['runc', 'crun'];
const versionTimeoutMs = 10_000;

/**
 * Finds the OCI binary and reads its name and version.
 *
 * @throws RuntimeError `Unsupported` when no binary is installed, it cannot be executed, it is not an OCI runtime, or
 *   it does not support the cgroups of this machine
 */
export async function findBinary(
  requested: string | undefined,
  cgroupMountpoint: string,
): Promise<{ readonly path: string; readonly version: BinaryVersion }> {
  const path =
    requested === undefined ? defaultBinaries.map(findTool).find((found) => found !== undefined) : locate(requested);
  if (path === undefined)
    throw new RuntimeError('Unsupported', `found none of ${defaultBinaries.join(', ')} in ${toolPath}`);
  const version = await versionOf(path);
  const hybrid = hybridControllers(cgroupMountpoint);
  if (version.name === 'crun' && hybrid.length > 0) {
    throw new RuntimeError(
      'Unsupported',
      `crun does not support hybrid cgroups: ${hybrid.join(', ')} on version 2, ` +
        'other controllers on version 1; use runc',
    );
  }
  return { path, version };
}

function locate(requested: string): string {
  if (!requested.includes('/')) {
    const found = findTool(requested);
    if (found === undefined) throw new RuntimeError('Unsupported', `found no "${requested}" in ${toolPath}`);
    return found;
  }
  try {
    accessSync(requested, constants.X_OK);
  } catch (error) {
    throw new RuntimeError('Unsupported', `cannot execute the OCI binary "${requested}"`, { cause: error });
  }
  return requested;
}

function versionOf(path: string): Promise<BinaryVersion> {
  return new Promise((resolve, reject) => {
    execFile(path, ['--version'], { timeout: versionTimeoutMs, env: binaryEnvironment }, (error, stdout) => {
      const [, name, version] = /^(\S+) version (\S+)$/m.exec(stdout) ?? [];
      if (error === null && name !== undefined && version !== undefined) resolve({ name, version });
      else
        reject(
          new RuntimeError('Unsupported', `the output of "${path} --version" is not that of an OCI runtime`, {
            cause: error,
          }),
        );
    });
  });
}
