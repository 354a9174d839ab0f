import { lengthErrors, ruleText } from './dns-names.ts';

const configMapKeySource = '[-._a-zA-Z0-9]+';
const envVarSource = '[-._a-zA-Z][-._a-zA-Z0-9]*';
const configMapKey = new RegExp(`^${configMapKeySource}$`);
const envVarName = new RegExp(`^${envVarSource}$`);
const portNameCharacters = /^[-a-z0-9]+$/;
const maxConfigMapKey = 253;
const maxPortName = 15;

/** Names that mean a directory, or begin like one. */
function directoryErrors(text: string): string[] {
  if (text === '.' || text === '..') return [`must not be '${text}'`];
  return text.startsWith('..') ? ["must not start with '..'"] : [];
}

/** The name of a container's or service's port. */
export function portNameErrors(text: string): string[] {
  const errors = lengthErrors(text, maxPortName);
  if (!portNameCharacters.test(text)) errors.push("must contain only lower case letters, digits and '-'");
  if (!/[a-z]/.test(text)) errors.push('must contain at least one letter');
  if (text.includes('--')) errors.push("must not contain consecutive '-'");
  if (text.startsWith('-') || text.endsWith('-')) errors.push("must not begin or end with '-'");
  return errors;
}

/** A key of the data of a ConfigMap or Secret; it becomes a file name. */
export function configMapKeyErrors(text: string): string[] {
  const errors = lengthErrors(text, maxConfigMapKey);
  if (!configMapKey.test(text)) {
    errors.push(
      ruleText(
        "a valid config key takes letters, digits, '-', '_' and '.'",
        ['key.name', 'KEY_NAME', 'key-name'],
        configMapKeySource,
      ),
    );
  }
  return [...errors, ...directoryErrors(text)];
}

/** The name of an environment variable. */
export function envVarNameErrors(text: string): string[] {
  const errors: string[] = [];
  if (!envVarName.test(text)) {
    errors.push(
      ruleText(
        "a valid environment variable name takes letters, digits, '_', '-' and '.', and does not begin with a digit",
        ['my.env-name', 'MY_ENV.NAME', 'MyEnvName1'],
        envVarSource,
      ),
    );
  }
  return [...errors, ...directoryErrors(text)];
}
