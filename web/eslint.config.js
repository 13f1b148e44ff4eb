import js from '@eslint/js';
import globals from 'globals';

/** Rules that catch mistakes; how code is laid out is left to its author. */
const rules = {
  ...js.configs.recommended.rules,
  'array-callback-return': 'error',
  'consistent-return': 'error',
  curly: 'error',
  'default-case-last': 'error',
  'dot-notation': 'error',
  eqeqeq: 'error',
  'guard-for-in': 'error',
  'max-lines': ['error', 400],
  'max-lines-per-function': ['error', 60],
  'no-alert': 'error',
  'no-await-in-loop': 'off', // requests to a session and downloads come one after another on purpose
  'no-console': 'error',
  'no-constructor-return': 'error',
  'no-else-return': 'error',
  'no-eval': 'error',
  'no-implicit-coercion': 'error',
  'no-implied-eval': 'error',
  'no-new-func': 'error',
  'no-param-reassign': 'error',
  'no-promise-executor-return': 'error',
  'no-return-assign': 'error',
  'no-self-compare': 'error',
  'no-shadow': 'error',
  'no-template-curly-in-string': 'error',
  'no-throw-literal': 'error',
  'no-unreachable-loop': 'error',
  'no-unused-expressions': 'error',
  'no-use-before-define': ['error', { functions: false, classes: false, variables: false }],
  'no-useless-return': 'error',
  'no-var': 'error',
  'object-shorthand': 'error',
  'prefer-arrow-callback': 'error',
  'prefer-const': 'error',
  'prefer-promise-reject-errors': 'error',
  'prefer-template': 'error',
  radix: 'error',
  'require-await': 'error',
  strict: ['error', 'never'],
};

// Everything of the browser is handed in, except in the files that are about the browser.
const BROWSER = ['fetch', 'navigator', 'performance', 'document', 'window', 'location', 'crypto'].map((name) => ({
  name,
  message: 'Take it from the Host that is passed in.',
}));

// Text of a model, a file or a server must never be read as HTML.
const MARKUP = ['innerHTML', 'outerHTML', 'insertAdjacentHTML', 'write'].map((property) => ({
  property,
  message: 'Set textContent.',
}));

export default [
  { linterOptions: { reportUnusedDisableDirectives: 'error' } },
  {
    files: ['src/**/*.js'],
    languageOptions: { globals: globals.browser },
    rules: { ...rules, 'no-restricted-properties': ['error', ...MARKUP] },
  },
  { files: ['src/*.js'], rules: { 'no-restricted-globals': ['error', ...BROWSER] } },
  {
    files: ['test/**/*.js', '*.js'],
    languageOptions: { globals: globals.node },
    rules: { ...rules, 'max-lines-per-function': 'off' },
  },
];
