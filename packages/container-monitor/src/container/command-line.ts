import { join, normalize } from 'node:path';
import { type ContainerConfig, type ImageConfig, RuntimeError } from '@keelson/container-runtime';

/** Returns the text when it contains nothing forbidden. @throws `InvalidArgument` */
export function passable(text: string, forbidden: RegExp, what: string): string {
  if (forbidden.test(text))
    throw new RuntimeError(
      'InvalidArgument',
      `${what} cannot be passed to a process: ${JSON.stringify(text.slice(0, 64))}`,
    );
  return text;
}

/**
 * Program and arguments of a container. Its command replaces entry point and arguments of the image; its arguments
 * replace only those of the image.
 * @throws `InvalidArgument` when there is no command, or one contains NUL.
 */
export function commandOf(config: ContainerConfig, image: ImageConfig): string[] {
  const { command = [], args = [] } = config;
  const commandLine =
    command.length > 0
      ? [...command, ...args]
      : [...(image.entrypoint ?? []), ...(args.length > 0 ? args : (image.cmd ?? []))];
  if (commandLine.length === 0)
    throw new RuntimeError('InvalidArgument', 'no command specified, neither by the container nor by its image');
  return commandLine.map((text) => passable(text, /\0/, 'command'));
}

/**
 * The environment of a container: `defaults`, overridden by the image, overridden by the container.
 * @throws `InvalidArgument` for names and values that no environment can contain.
 */
export function environmentOf(
  config: ContainerConfig,
  image: ImageConfig,
  defaults: Iterable<readonly [string, string]>,
): Map<string, string> {
  const env = new Map<string, string>(defaults);
  for (const entry of image.env ?? []) env.set(entry.split('=', 1)[0] ?? '', entry.slice(entry.indexOf('=') + 1));
  for (const { name, value } of config.env ?? [])
    env.set(passable(name, /^$|[=\0]/, 'environment name'), passable(value, /\0/, `value of ${name}`));
  return env;
}

/**
 * Absolute path of a container's log; undefined for a container without one.
 * @throws `InvalidArgument` when the path is not below the directory.
 */
export function logPathOf(directory: string | undefined, path: string | undefined): string | undefined {
  if (directory === undefined || path === undefined || path === '') return undefined;
  const full = normalize(join(directory, path));
  if (!full.startsWith(`${normalize(directory).replace(/\/$/, '')}/`)) {
    throw new RuntimeError('InvalidArgument', `log path is not below the log directory: "${path}"`);
  }
  return full;
}
