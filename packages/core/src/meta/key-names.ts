import { lengthErrors, ruleText } from './dns-names.ts';

const configMapKeySource = '[-._a-zA-Z0-9]+';
const envVarSource = '[-._a-zA-Z][-._a-zA-Z0-9]*';
const configMapKey = new RegExp(`^${configMapKeySource}$`);
const envVarName = new RegExp(`^${envVarSource}$`);
const portNameCharacters = /^[-a-z0-9]+$/;
const maxConfigMapKey = 253;
const maxPortName = 15;

/** Names with a special meaning in paths, and names that start like `..`. */
function directoryErrors(text: string): string[] {
  if (text === '.' || text === '..') return [`must not be '${text}'`];
  return text.startsWith('..') ? ["must not start with '..'"] : [];
}

/** Violations of the rule for port names of containers and services. */
export function portNameErrors(text: string): string[] {
  const errors = lengthErrors(text, maxPortName);
  if (!portNameCharacters.test(text)) {
    errors.push('must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)');
  }
  if (!/[a-z]/.test(text)) errors.push('must contain at least one letter (a-z)');
  if (text.includes('--')) errors.push('must not contain consecutive hyphens');
  if (text.startsWith('-') || text.endsWith('-')) errors.push('must not begin or end with a hyphen');
  return errors;
}

/** Violations of the rule for keys of ConfigMaps and Secrets, which become file names. */
export function configMapKeyErrors(text: string): string[] {
  const errors = lengthErrors(text, maxConfigMapKey);
  if (!configMapKey.test(text)) {
    errors.push(
      ruleText(
        "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
        ['key.name', 'KEY_NAME', 'key-name'],
        configMapKeySource,
      ),
    );
  }
  return [...errors, ...directoryErrors(text)];
}

/** Violations of the rule for names of environment variables. */
export function envVarNameErrors(text: string): string[] {
  const errors: string[] = [];
  if (!envVarName.test(text)) {
    errors.push(
      ruleText(
        "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', " +
          'and must not start with a digit',
        ['my.env-name', 'MY_ENV.NAME', 'MyEnvName1'],
        envVarSource,
      ),
    );
  }
  return [...errors, ...directoryErrors(text)];
}
