import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Clock, type Logger, silentLogger, systemClock } from '@keelson/core/runtime';
import type { ExecutionContext } from 'ava';
import { type CniNetworkOptions, createCniNetwork, type NetworkPlugin, type NetworkRequest } from '../../src/index.ts';

/** A call that a plugin has written down. */
export interface Call {
  readonly plugin: string;
  readonly command: string;
  readonly id: string;
  readonly netns: string;
  readonly ifName: string;
  readonly args: string;
  readonly path: string;
  readonly stdin: Readonly<Record<string, unknown>>;
}

const versions = ['0.1.0', '0.2.0', '0.3.0', '0.3.1', '0.4.0', '1.0.0'];

/** Folders of networks and of plugins, which are shell scripts that write down how they are called. */
export interface Bench {
  readonly binDir: string;
  readonly confDir: string;
  readonly stateDir: string;
  /** A plugin; `script` is run with $CNI_COMMAND and so on, after the call was written down. */
  plugin(name: string, script?: string, supported?: readonly string[]): Promise<void>;
  network(file: string, content: unknown): Promise<void>;
  /** What was called, without questions for versions. */
  calls(): Promise<Call[]>;
  forgetCalls(): Promise<void>;
  open(options?: Partial<CniNetworkOptions> & { readonly clock?: Clock; readonly logger?: Logger }): NetworkPlugin;
}

/** Answers ADD with one address. */
export function answers(version: string, address = '10.9.0.7/24'): string {
  const result = { cniVersion: version, ips: [{ ...(version < '1' && { version: '4' }), address }] };
  return `if [ $CNI_COMMAND = ADD ]; then echo '${JSON.stringify(result)}'; fi`;
}

export async function scriptedPlugins(t: ExecutionContext): Promise<Bench> {
  const root = await mkdtemp(join(tmpdir(), 'keelson-cni-'));
  t.teardown(() => rm(root, { recursive: true, force: true }));
  const [binDir, confDir, stateDir, log] = ['bin', 'net.d', 'state', 'calls'].map((name) => join(root, name)) as [
    string,
    string,
    string,
    string,
  ];
  await mkdir(binDir);
  await mkdir(confDir);
  const plugin: Bench['plugin'] = async (name, script = '', supported = versions) => {
    const path = join(binDir, name);
    await writeFile(
      path,
      `#!/bin/sh
input=$(cat)
if [ $CNI_COMMAND = VERSION ]; then echo '${JSON.stringify({ cniVersion: '1.0.0', supportedVersions: supported })}'; exit; fi
printf '{"plugin":"%s","command":"%s","id":"%s","netns":"%s","ifName":"%s","args":"%s","path":"%s","stdin":%s}\\n' \\
  ${name} "$CNI_COMMAND" "$CNI_CONTAINERID" "$CNI_NETNS" "$CNI_IFNAME" "$CNI_ARGS" "$CNI_PATH" "$input" >> ${log}
${script}
`,
    );
    await chmod(path, 0o755);
  };
  await plugin('loopback', `if [ $CNI_COMMAND = ADD ]; then echo '{"cniVersion":"0.3.1"}'; fi`);
  return {
    binDir,
    confDir,
    stateDir,
    plugin,
    network: (file, content) =>
      writeFile(join(confDir, file), typeof content === 'string' ? content : JSON.stringify(content)),
    async calls() {
      if (!existsSync(log)) return [];
      const lines = (await readFile(log, 'utf8')).trim().split('\n');
      return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Call);
    },
    forgetCalls: () => rm(log, { force: true }),
    open: (options = {}) =>
      createCniNetwork({
        binDirs: [binDir],
        confDir,
        stateDirectory: stateDir,
        // Scripts are read by a shell that is there already: a file that was just written may be busy for a moment, so
        // it is not run itself.
        launch: ['sh'],
        clock: systemClock,
        logger: silentLogger,
        ...options,
      }),
  };
}

/** A namespace that lives as long as this process. */
export const netnsPath = '/proc/self/ns/net';

export const request: NetworkRequest = { sandboxId: 's1', namespace: 'web', name: 'front-1', uid: 'u-1', netnsPath };
