package io.soal.logstore;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/**
 * Runs the log store's classes in a JVM without Spark, for tests: one request per line on stdin, one answer per line on
 * stdout. It exits at the end of its input.
 */
public final class Driver {
  static final ObjectMapper JSON = new ObjectMapper();

  private Driver() {}

  public static void main(String[] arguments) throws IOException {
    PrintStream answers = System.out;
    System.setOut(System.err); // libraries must not print among the answers
    BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = requests.readLine(); line != null; line = requests.readLine()) {
      answers.println(JSON.writeValueAsString(answer(JSON.readTree(line))));
      answers.flush();
    }
  }

  private static Object answer(JsonNode request) {
    try {
      switch (request.get("do").asText()) {
        case "history":
          return new History().play(request.get("steps"));
        case "race":
          return Race.run(request.get("rounds").asInt());
        default:
          return Store.answer(request);
      }
    } catch (Exception error) {
      return Map.of("error", Store.told(error), "interrupted", Store.interrupted, "pauses", Store.pauses);
    }
  }
}
