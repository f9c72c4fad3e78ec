import java.util.List;
import org.openapitools.client.ApiClient;
import org.openapitools.client.api.TokenApi;
import org.openapitools.client.model.EmailFeature;
import org.openapitools.client.model.WaitForEmailRequest;
import org.openapitools.client.model.WaitForEmailRequestMatch;

/** Waits for a mail with the client that openapi-generator makes: Wait BASE_URL TOKEN ADDRESS */
public final class Wait {
  public static void main(String[] arguments) throws Exception {
    var client = new ApiClient();
    client.updateBaseUri(arguments[0]);
    client.setRequestInterceptor(request -> request.header("x-api-token", arguments[1]));
    var api = new TokenApi(client);

    var match = new WaitForEmailRequestMatch().has(List.of(EmailFeature.CODE));
    var found = api.waitForEmail(new WaitForEmailRequest().address(arguments[2]).since("0").match(match));
    var token = api.listLiveTokens(1).getTokens().get(0);
    System.out.println(found.getCodes().get(0).getCode() + " " + (token.getExpiresAt() == null));
  }
}
