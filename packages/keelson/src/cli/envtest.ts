import { type EnvtestServer, envtestHelp, envtestServer } from '../envtest/api-server.ts';
import { envtestSynopsis, writeEnvtestAssets } from '../envtest/assets.ts';
import type { CommandIo } from './main.ts';

/**
 * Runs `keelson envtest`.
 *
 * @returns the server to start when the arguments are those of kube-apiserver. @throws UsageError
 */
export async function envtestCommand(words: readonly string[], io: CommandIo): Promise<EnvtestServer | undefined> {
  const [program, ...rest] = words;
  const help = words.some((word) => word === '--help' || word === '-h');
  if (program === 'kube-apiserver') {
    if (!help) return envtestServer(rest, io.env, (line) => io.stderr(`keelson: ${line}\n`));
    io.stdout(envtestHelp());
  } else if (help) io.stdout(envtestSynopsis);
  else io.stdout(`${await writeEnvtestAssets(words, io.env)}\n`);
  return undefined;
}
