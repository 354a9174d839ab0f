import { chmod, mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** A volume plugin as third parties write them: a shell script that notes how it was called. */
export interface ShellDriver {
  /** For `--volume-plugin-dir`. */
  readonly directory: string;
  /** How it was called, with directories of pods shortened. */
  calls(): Promise<string[]>;
  /** Replaces the responses, as an update of the plugin does. */
  install(answers: Readonly<Record<string, string>>): Promise<void>;
}

const success = `echo '{"status":"Success"}'`;

/** Answers of a driver that only mounts: it writes its options into the volume. */
export const mountingAnswers: Readonly<Record<string, string>> = {
  init: `echo '{"status":"Success","capabilities":{"attach":false}}'`,
  mount: `printf '%s' "$3" > "$2/options"; ${success}`,
  unmount: `rm -f "$2/options"; ${success}`,
};

/** Answers of a driver that attaches as well. */
export const attachingAnswers: Readonly<Record<string, string>> = {
  init: `echo '{"status":"Success"}'`,
  getvolumename: `echo '{"status":"Success","volumeName":"vol-7"}'`,
  attach: `echo '{"status":"Success","device":"/dev/fake7"}'`,
  waitforattach: `echo "{\\"status\\":\\"Success\\",\\"device\\":\\"$2\\"}"`,
  mountdevice: `echo shared > "$2/data"; ${success}`,
  unmountdevice: `rm -f "$2/data"; ${success}`,
  detach: success,
  mount: `echo own > "$2/data"; ${success}`,
  unmount: `rm -f "$2/data"; ${success}`,
};

/** Makes the driver `name`, `vendor/driver`, below a directory. */
export async function shellDriver(
  directory: string,
  name: string,
  answers: Readonly<Record<string, string>>,
): Promise<ShellDriver> {
  const folder = join(directory, name.replace('/', '~'));
  const script = join(folder, name.replace(/^.*\//, ''));
  const log = join(directory, '.calls');
  await mkdir(folder, { recursive: true });
  const driver: ShellDriver = {
    directory,
    async calls() {
      const lines = (await readFile(log, 'utf8').catch(() => '')).split('\n').slice(0, -1);
      return lines.map((line) => line.replace(/\/\S*\/(pods|plugins)\//g, '$1/').replace(/ \{.*\}/, ' {}'));
    },
    async install(next) {
      const cases = Object.entries(next).map(([command, answer]) => `${command}) ${answer} ;;`);
      const text = `#!/bin/sh
echo "$@" >> '${log}'
case "$1" in
${cases.join('\n')}
*) echo '{"status":"Not supported"}'; exit 1 ;;
esac
`;
      await writeFile(`${script}.new`, text);
      await chmod(`${script}.new`, 0o755);
      await rename(`${script}.new`, script);
    },
  };
  await driver.install(answers);
  return driver;
}
