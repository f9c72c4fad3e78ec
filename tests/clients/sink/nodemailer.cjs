// Sends a mail with nodemailer: node nodemailer.cjs HOST PORT RECIPIENT SUBJECT
const { createTransport } = require("nodemailer");

const [host, port, to, subject] = process.argv.slice(2);
createTransport({ host, port: Number(port) })
  .sendMail({ from: "app@client.example", to, subject, text: "Hello." })
  .catch((error) => {
    console.error(error.response ?? error.message);
    process.exitCode = 1;
  });
